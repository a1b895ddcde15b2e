/**
 * Compares the lists of several mirrors, level by level. The levels that a mirror must have follow from its tip, so a
 * level that one mirror lacks is a difference. Files with equal names are equal, because a name is a hash of the
 * content. Files with other names may still have the same text, because their bytes also depend on the version of zlib.
 * So their texts are compared.
 */
import { createHash } from 'node:crypto';
import type { BlockDigest, Manifest } from '../contract/schemas.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { Archive, type ArchiveFiles } from '../format/archiveReader.ts';
import { textOf } from '../format/documents.ts';
import { type DocumentLevel, type LevelRange, levelRanges } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import { groupBy } from '../groupBy.ts';
import { siteOf } from '../pages/mirrorOptions.ts';

/** A mirror's manifest and blocks, and a reader of the files of its archive. */
export interface ListedMirror {
  readonly manifest: Manifest;
  readonly blocks: readonly BlockDigest[];
  readonly files: ArchiveFiles;
}

/** A level of a list (format/levels.ts). */
interface ListLevel {
  readonly list: string;
  readonly range: LevelRange;
}

/** A level that several mirrors must have, but with different content. */
interface DifferentLevel extends ListLevel {
  /** Identifiers of the content of the level (`contentsOf`), by index of the mirror. */
  readonly contents: ReadonlyMap<number, string>;
}

export interface ComparedLists {
  /** In the order of lists and heights. */
  readonly different: readonly DifferentLevel[];
  /** Indexes of the mirrors whose lists were compared. */
  readonly compared: readonly number[];
  /** Names of the lists of which at least one level was compared. */
  readonly lists: readonly string[];
  /** Levels that only one of these mirrors must have, by index of the mirror. */
  readonly alone: ReadonlyMap<number, readonly ListLevel[]>;
  /** What is wrong with the root of a mirror, by index of the mirror. */
  readonly faults: ReadonlyMap<number, string>;
}

/** The lists that are stored as documents. All other lists follow from these lists and from the blocks. */
const LISTS: Readonly<Record<string, (lists: ListTables) => readonly DocumentLevel[] | undefined>> = {
  etchings: ({ etchings }) => etchings?.levels,
  'names of runes': ({ etchings }) => etchings?.runes,
  balances: ({ balances }) => balances?.addresses,
  holders: ({ balances }) => balances?.holders,
  outputs: ({ outputs }) => outputs?.outputs,
  'outputs of addresses': ({ outputs }) => outputs?.addresses,
};

/** The lists whose levels begin at height 0 in every mirror, even in a mirror of the last N blocks. */
const ETCHING_LISTS = ['etchings', 'names of runes'];

interface OpenedLevel {
  readonly mirror: number;
  /** Undefined if no list has changed in the blocks of the level. */
  readonly level: DocumentLevel | undefined;
  readonly archive: Archive;
}

/**
 * Compares levels of equal heights. Skips mirrors whose lists have another dialect or page size than the lists
 * of the first mirror with lists. Rejects with an ArchiveError if a file is missing or damaged.
 */
export async function compareLists(mirrors: readonly ListedMirror[]): Promise<ComparedLists> {
  const damaged = new Map<number, string>();
  const openOrSay = (mirror: ListedMirror, i: number) =>
    openLists(mirror).catch((error: unknown) => {
      if (!(error instanceof ArchiveError)) throw error;
      damaged.set(i, `has lists that cannot be compared: ${error.message}`);
      return undefined;
    });
  const all = await Promise.all(mirrors.map(openOrSay));
  const first = all.find((one) => one !== undefined);
  const opened = [...all.entries()].flatMap(([mirror, one]) => (one === undefined || one.form !== first?.form ? [] : [{ ...one, mirror }]));
  const faults = new Map(damaged);
  for (const { mirror, fault, steps } of opened) {
    const wrong = fault ?? (steps === first?.steps ? undefined : 'has lists in levels of other sizes');
    if (wrong !== undefined) faults.set(mirror, wrong);
  }
  const different: DifferentLevel[] = [];
  const compared = new Set<string>();
  const alone = new Map<number, ListLevel[]>();
  for (const [list, levelsOf] of Object.entries(LISTS)) {
    const levels = opened.flatMap(({ lists, ranges, ...one }) => {
      const found = levelsOf(lists);
      const at = (range: LevelRange) => found?.find((level) => isSame(level, range));
      return found === undefined ? [] : ranges(list).map((range) => ({ ...one, range, level: at(range) }));
    });
    for (const equalRanges of groupBy(levels, ({ range }) => `${range.first} ${range.last}`).values()) {
      const [one] = equalRanges;
      if (one === undefined || equalRanges.every(({ level }) => level === undefined)) continue;
      const { range } = one;
      if (equalRanges.length === 1) {
        alone.set(one.mirror, [...(alone.get(one.mirror) ?? []), { list, range }]);
        continue;
      }
      compared.add(list);
      const contents = await contentsOf(equalRanges);
      if (new Set(contents.values()).size > 1) different.push({ list, range, contents });
    }
  }
  return { different, compared: opened.map(({ mirror }) => mirror), lists: [...compared], alone, faults };
}

const isSame = (a: LevelRange, b: LevelRange): boolean => a.first === b.first && a.last === b.last;

interface OpenedLists {
  readonly archive: Archive;
  readonly lists: ListTables;
  /** Only lists with the same `form` can be compared: dialect and page size. */
  readonly form: string;
  readonly steps: string;
  /** Returns the ranges that the levels of a list must have. */
  readonly ranges: (list: string) => readonly LevelRange[];
  /** Says why the root does not match the manifest and blocks of the mirror. */
  readonly fault: string | undefined;
}

/** Opens the lists of a mirror. Undefined for a mirror without lists. */
async function openLists({ manifest, blocks, files }: ListedMirror): Promise<OpenedLists | undefined> {
  const { listRoot, dialect, layout, tip } = siteOf(manifest);
  const archive = listRoot && (await Archive.open(listRoot, files));
  const lists = archive?.root.lists;
  if (archive === undefined || lists === undefined) return undefined;
  const lowest = layout === 'files' && lists.activity !== undefined ? (blocks[0]?.height ?? 0) : undefined;
  const [ofEtchings, others] = [undefined, lowest].map((from) => levelRanges(tip, lists, from));
  const ranges = (list: string) => (ETCHING_LISTS.includes(list) ? ofEtchings : others) ?? [];
  const { etchings, balances, holders, outputs } = manifest.lists ?? {};
  const has = [etchings, balances, holders, outputs].map((part) => part !== undefined);
  const fault =
    lists.tip !== tip || lists.lowest !== lowest
      ? 'has lists of other blocks than its manifest'
      : has.join() !== [lists.etchings, lists.balances, lists.balances, lists.outputs].map((part) => part !== undefined).join()
        ? 'has other lists than its manifest says'
        : undefined;
  const [form, steps] = [`${dialect} ${lists.page}`, `${lists.steps} ${lists.unsettled}`];
  return { archive, lists, form, steps, ranges, fault };
}

/**
 * Returns an identifier of the content of each mirror's level. It consists of the names of the level's files if these
 * are the same in all mirrors. Otherwise it is a hash of the level's text.
 */
async function contentsOf(levels: readonly OpenedLevel[]): Promise<Map<number, string>> {
  const byNames = groupBy(levels, ({ level }) => level?.files.map(({ file }) => file).join(' ') ?? '');
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
  if (level === undefined) return 'no level';
  for await (const text of textOf(archive, level)) hash.update(text);
  return hash.digest('hex');
}
