/**
 * Writes the etchings of an archive: pages and names, in levels of heights like those of the table of ids.
 *
 * A level has the pages that changed in its blocks, as they are after the last of these. So it depends on the blocks up
 * to its end only: a new block writes the newest level, and an incremental build makes the files of a full one.
 */
import { renderPageDirectory } from '../archive/etchings.ts';
import { type LevelRange, levelRanges } from '../archive/levels.ts';
import { nameKeyOf } from '../archive/nameKey.ts';
import type { EtchingFile, EtchingTables } from '../archive/root.ts';
import type { Level } from '../archive/sortedTable.ts';
import { HAS_COUNTS, lowestChange, windowMoves } from '../etchings/changes.ts';
import type { EtchingFacts } from '../etchings/facts.ts';
import { type NamedRune, readNames } from '../etchings/names.ts';
import { type EtchingPage, type PageForm, renderPages } from '../etchings/pages.ts';
import { renderEtchingPage } from '../pages/etchingFiles.ts';
import { maximumLimit, type Site } from '../pages/site.ts';
import type { Store } from '../store/duckdb.ts';
import { gzipMember } from '../write/compress.ts';
import { yieldNow } from '../yieldNow.ts';
import type { ArchivedBlocks, PutFile } from './segments.ts';
import type { StoredArchive } from './storedArchive.ts';
import { LevelWriter } from './tables.ts';

/** The etchings of the last build and of this one; undefined without etchings. */
export interface EtchingChange {
  readonly before: EtchingFacts | undefined;
  readonly now: EtchingFacts | undefined;
}

/** Writes the levels that changed since the last build. Needs the tables of etchings (etchings/facts.ts). */
export async function writeEtchings(
  site: Site,
  { before, now }: EtchingChange,
  blocks: ArchivedBlocks,
  old: StoredArchive | undefined,
  put: PutFile,
  store: Store,
): Promise<EtchingTables | undefined> {
  if (now === undefined) return undefined;
  const form: PageForm = { dialect: site.dialect, pageSize: maximumLimit(site), hasCounts: now.hasCounts, limits: blocks.limits };
  const { tableLevels } = blocks.limits;
  const tables = before?.hasCounts === now.hasCounts ? old?.root.etchings : undefined;
  const known = tables === undefined || before === undefined ? [] : levelRanges(before.tip, tableLevels);
  let unchanged = tables === undefined ? 0 : await lowestChange(store);
  for (const height of blocks.replaced) unchanged = Math.min(unchanged, height);
  const pages: EtchingFile[] = [];
  const names: Level[] = [];
  for (const range of levelRanges(now.tip, tableLevels)) {
    const isSame = ({ first, last }: LevelRange) => first === range.first && last === range.last;
    if (tables !== undefined && range.last < unchanged && known.some(isSame)) {
      for (const file of tables.pages.filter(isSame)) pages.push(file);
      for (const level of tables.names.filter(isSame)) names.push(level);
      continue;
    }
    const changed = renderPages(changedPages(range, form), range.last, form, store);
    for (const file of await writePages(range, changed, blocks.objectSize, put)) pages.push(file);
    const level = await writeNames(range, await readNames(range.first, range.last, store), blocks, put);
    if (level !== undefined) names.push(level);
  }
  return { total: now.total, pages, names };
}

/** Returns SQL of the pages that changed in a range of heights. */
function changedPages({ first, last }: LevelRange, { pageSize, hasCounts }: PageForm): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const moved = `SELECT rune_id FROM state.block_runes WHERE ${isIn} AND ${HAS_COUNTS} UNION SELECT id FROM state.runes WHERE ${windowMoves(first, last)}`;
  return `SELECT ordinal // ${pageSize} FROM etchings WHERE ${isIn} OR (${hasCounts} AND block_height <= ${last} AND id IN (${moved}))`;
}

/** Packs pages into files of at most `objectSize` bytes, or one page. */
async function writePages(
  { first, last }: LevelRange,
  pages: AsyncIterable<EtchingPage>,
  objectSize: number,
  put: PutFile,
): Promise<EtchingFile[]> {
  const files: EtchingFile[] = [];
  let members: { readonly page: number; readonly gzip: Uint8Array }[] = [];
  let size = 0;
  const end = () => {
    const [begin, stop] = [members[0], members.at(-1)];
    if (begin === undefined || stop === undefined) return;
    const directory = gzipMember(Buffer.from(renderPageDirectory(members.map(({ page, gzip }) => [page, gzip.length]))));
    const content = Buffer.concat([...members.map(({ gzip }) => gzip), directory]);
    files.push({ first, last, from: begin.page, to: stop.page, file: put(content), bytes: content.length, directory: directory.length });
    members = [];
    size = 0;
  };
  for await (const { page, etchings } of pages) {
    const gzip = gzipMember(Buffer.from(renderEtchingPage(etchings)));
    if (size + gzip.length > objectSize) end();
    members.push({ page, gzip });
    size += gzip.length;
  }
  end();
  return files;
}

/** Writes a level of the table of names. Undefined without runes. */
async function writeNames(
  { first, last }: LevelRange,
  runes: readonly NamedRune[],
  { objectSize, limits }: ArchivedBlocks,
  put: PutFile,
): Promise<Level | undefined> {
  const entries: NameEntry[] = [];
  for (const rune of runes) {
    for (const entry of entriesOfRune(rune)) entries.push(entry);
    await yieldNow();
  }
  const writer = new LevelWriter(objectSize, limits, put);
  for (const { key, ordinal } of entries.sort(compareEntries)) writer.add({ key, height: 0, first: ordinal, count: 0 });
  return writer.finish(first, last);
}

interface NameEntry {
  readonly key: number;
  readonly ordinal: number;
}

const entriesOfRune = ({ ordinal, names }: NamedRune): NameEntry[] => names.map((name) => ({ key: nameKeyOf(name), ordinal }));

const compareEntries = (a: NameEntry, b: NameEntry): number => a.key - b.key || a.ordinal - b.ordinal;

/** Returns the entries of names in the order of their table. */
export const nameEntries = (runes: readonly NamedRune[]): NameEntry[] => runes.flatMap(entriesOfRune).sort(compareEntries);
