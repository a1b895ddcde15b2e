/**
 * Compares the lists of several mirrors. Files with equal names are equal, because a name is a hash of the content.
 * Files with other names may still have the same text, because their bytes also depend on the version of zlib. So their
 * texts are compared.
 */
import { createHash } from 'node:crypto';
import type { Manifest } from '../contract/schemas.ts';
import { Archive, type ArchiveFiles } from '../format/archiveReader.ts';
import { textOf } from '../format/documents.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import { groupBy } from '../groupBy.ts';
import { siteOf } from '../pages/mirrorOptions.ts';

/** A mirror's manifest, and a reader of the files of its archive. */
export interface ListedMirror {
  readonly manifest: Manifest;
  readonly files: ArchiveFiles;
}

/** A level of a list (format/levels.ts) that has the same heights in several mirrors, but different content. */
interface DifferentLevel {
  readonly list: string;
  readonly range: LevelRange;
  /** Identifiers of the content of the level (`contentsOf`), by index of the mirror. */
  readonly contents: ReadonlyMap<number, string>;
}

export interface ComparedLists {
  /** In the order of lists and heights. */
  readonly different: readonly DifferentLevel[];
  /** Indexes of the mirrors whose lists were compared. */
  readonly compared: readonly number[];
}

/**
 * The list whose documents refer to pages of lower levels. The lower levels depend on the block at which the mirror
 * starts, so the content of a level depends on this block, too.
 */
const BY_PAGE = 'outputs of addresses';

/** The lists that are stored as documents. All other lists follow from these lists and from the blocks. */
const LISTS: Readonly<Record<string, (lists: ListTables) => readonly DocumentLevel[] | undefined>> = {
  etchings: ({ etchings }) => etchings?.levels,
  balances: ({ balances }) => balances?.addresses,
  holders: ({ balances }) => balances?.holders,
  outputs: ({ outputs }) => outputs?.outputs,
  [BY_PAGE]: ({ outputs }) => outputs?.addresses,
};

interface OpenedLevel {
  readonly mirror: number;
  readonly level: DocumentLevel;
  readonly archive: Archive;
  /** Height of the start (contract/sources.ts) on which the content depends. -1 if it does not depend on a start. */
  readonly below: number;
}

/**
 * Compares levels of equal heights. Skips mirrors whose lists have another dialect, page size or start than the lists
 * of the first mirror with lists. Rejects with an ArchiveError if a file is missing or damaged.
 */
export async function compareLists(mirrors: readonly ListedMirror[]): Promise<ComparedLists> {
  const all = await Promise.all(mirrors.map(openLists));
  const first = all.find((one) => one !== undefined);
  const opened = [...all.entries()].flatMap(([mirror, one]) => (one === undefined || one.form !== first?.form ? [] : [{ ...one, mirror }]));
  const different: DifferentLevel[] = [];
  for (const [list, levelsOf] of Object.entries(LISTS)) {
    const levels = opened.flatMap(({ lists, ...one }) =>
      (levelsOf(lists) ?? []).map((level): OpenedLevel => ({ ...one, level, below: list === BY_PAGE ? (lists.start?.height ?? -1) : -1 })),
    );
    for (const equalRanges of groupBy(levels, ({ level, below }) => `${level.first} ${level.last} ${below}`).values()) {
      const contents = await contentsOf(equalRanges);
      const [one] = equalRanges;
      if (one !== undefined && new Set(contents.values()).size > 1) different.push({ list, range: one.level, contents });
    }
  }
  return { different, compared: opened.map(({ mirror }) => mirror) };
}

/**
 * Opens the lists of a mirror. Undefined for a mirror without lists. Only lists with the same `form` can be compared:
 * dialect, page size and start.
 */
async function openLists({ manifest, files }: ListedMirror): Promise<{ archive: Archive; lists: ListTables; form: string } | undefined> {
  const { listRoot, dialect } = siteOf(manifest);
  const archive = listRoot && (await Archive.open(listRoot, files));
  const lists = archive?.root.lists;
  const start = manifest.start?.height ?? 'all blocks';
  return archive && lists && { archive, lists, form: `${dialect} ${lists.page} ${start}` };
}

/**
 * Returns an identifier of the content of each mirror's level. It consists of the names of the level's files if these
 * are the same in all mirrors. Otherwise it is a hash of the level's text.
 */
async function contentsOf(levels: readonly OpenedLevel[]): Promise<Map<number, string>> {
  const byNames = groupBy(levels, ({ level: { files } }) => files.map(({ file }) => file).join(' '));
  const contents = new Map<number, string>();
  for (const [names, same] of byNames) {
    const [one] = same;
    const content = one === undefined || byNames.size === 1 ? names : await hashOf(one);
    for (const { mirror } of same) contents.set(mirror, content);
  }
  return contents;
}

async function hashOf({ archive, level }: OpenedLevel): Promise<string> {
  const hash = createHash('sha256');
  for await (const text of textOf(archive, level)) hash.update(text);
  return hash.digest('hex');
}
