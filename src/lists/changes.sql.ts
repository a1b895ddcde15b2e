/**
 * Writes the files of changes (changes.ts), which list the runes, addresses and outputs that each of the newest blocks
 * touched. Also writes the list of these files.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../contract/sources.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { ChangedArchiveError } from '../engine/archive/storedArchive.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { BlockChanges } from '../engine/state/updateState.ts';
import { emptyIfMissing } from '../errors.ts';
import type { Loaded } from '../input/loadInput.ts';
import { exceeds, type Limits } from '../limits.ts';
import { CHANGES_FOLDER, CHANGES_INDEX_PATH } from '../pages/filePaths.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { changesFile, changesIndex, type ListedChanges, type Point } from './changes.ts';
import { digestOf, readLists, updateTouched } from './changesOfBlocks.sql.ts';
import { knowsSpent } from './unspentOutputs.sql.ts';

/** The output folder, the sink for its files, and the settings of the build. */
interface ChangesForm {
  readonly out: string;
  /** The cache folder, or a temporary folder in a dry run. */
  readonly cache: string;
  readonly sink: Pick<FileSink, 'file'>;
  readonly dialect: Dialect;
  readonly limits: Pick<Limits, 'changesBlocks' | 'changesEntries' | 'spentBlocks' | 'listedAtOnce'>;
}

/**
 * Writes the files of changes of the newest blocks, except files that the last build wrote, and the list of all these
 * files. `state` must already have the new blocks. Returns the paths of files that are no longer needed. Rejects with a
 * ChangedArchiveError if the cache lacks the lists of one of these blocks, because a reorganisation lowered the tip too
 * far, or if the file of such lists is damaged.
 */
export async function writeChanges(
  { out, cache, sink, dialect, limits }: ChangesForm,
  loaded: Pick<Loaded, 'kept' | 'spent' | 'ends'>,
  blocks: Pick<BlockChanges, 'written' | 'replaced'>,
  state: StateTables,
  store: Store,
): Promise<string[]> {
  await updateTouched(cache, limits, loaded, blocks, state, store);
  const hasSpent = await knowsSpent(state, store);
  const points = await newestBlocks(limits.changesBlocks + 1, loaded.ends ?? [], state, store);
  const hasMore = exceeds(limits, 'changesBlocks', points.length);
  const touched = await store.rows(`FROM ${state.touched}`, { block_height: int, digest: text, cut: text });
  const listsOf = new Map(touched.map((row) => [row.block_height, row]));
  const known = await store.rows(`FROM ${state.changesFiles}`, { source: text, sha256: text });
  const before = new Map(known.map((row) => [row.source, row.sha256]));
  const listed: (ListedChanges & { readonly source: string })[] = [];
  // If `points` has more blocks than may have files, the lowest block gets no file. It is only `previous` of the block
  // above.
  let previous: Point | undefined = hasMore ? points.shift() : undefined;
  for (const { isEmpty, ...point } of points) {
    const lists = listsOf.get(point.height);
    if (lists === undefined && !isEmpty) throw new ChangedArchiveError('the build needs changes of blocks that the cache no longer has');
    const source = JSON.stringify([point.height, point.hash, previous?.height, previous?.hash, lists?.digest, lists?.cut, hasSpent]);
    let sha256 = before.get(source);
    if (sha256 === undefined) {
      const [runes = '[]', addresses = '[]', made = '[]', spent = '[]'] = lists === undefined ? [] : readLists(cache, lists.digest);
      const isCut = lists?.cut.split(',').some((kind) => kind !== '' && (hasSpent || kind !== 'spent')) ?? false;
      const [path, content] = changesFile(
        { ...point, previous, lists: { runes, addresses, made, spent: hasSpent ? spent : undefined }, isCut },
        dialect,
      );
      sink.file(path, Buffer.from(content));
      sha256 = digestOf(content);
    }
    listed.push({ ...point, sha256, source });
    previous = point;
  }
  const index = changesIndex(listed, { most_blocks: limits.changesBlocks, most_entries: limits.changesEntries }, dialect);
  sink.file(CHANGES_INDEX_PATH, Buffer.from(index));
  const rows = listed.map(({ source, sha256 }) => `(${literal(source)}, ${literal(sha256)})`);
  await store.run(`DELETE FROM ${state.changesFiles}; ${rows.length === 0 ? '' : `INSERT INTO ${state.changesFiles} VALUES ${rows.join(', ')};`}
    DELETE FROM ${state.changesIndex}; INSERT INTO ${state.changesIndex} VALUES (${literal(digestOf(index))})`);
  const present = new Set(['index', ...listed.map(({ height }) => String(height))].map((name) => `${name}.json`));
  return emptyIfMissing(() => readdirSync(join(out, CHANGES_FOLDER)))
    .filter((name) => !present.has(name))
    .map((name) => `${CHANGES_FOLDER}/${name}`);
}

/**
 * Returns the newest blocks whose hashes are known, ascending: blocks with records, and blocks of `ends`, which may
 * have no records. With data from a node, `ends` has the blocks at the newest heights. Ignores older blocks of `ends`,
 * because the next build may not have their hashes.
 */
async function newestBlocks(
  count: number,
  ends: readonly LastRead[],
  { blocks, tip }: StateTables,
  store: Store,
): Promise<(Point & { readonly isEmpty: boolean })[]> {
  const known = await store.rows(
    `SELECT block_height AS height, block_hash AS hash FROM ${blocks} ORDER BY block_height DESC LIMIT ${count}`,
    { height: int, hash: text },
  );
  const [last] = await store.rows(`SELECT block_height AS height FROM ${tip}`, { height: int });
  const heights = new Set(known.map(({ height }) => height));
  const isNew = ({ height }: LastRead) =>
    last !== undefined && height <= last.height && height > last.height - count && !heights.has(height);
  const empty = ends.filter(isNew).map((end) => ({ ...end, isEmpty: true }));
  const all = [...known.map((block) => ({ ...block, isEmpty: false })), ...empty];
  return all
    .sort((a, b) => b.height - a.height)
    .slice(0, count)
    .reverse();
}
