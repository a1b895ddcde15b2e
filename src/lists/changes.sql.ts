/**
 * Writes the files of changes (changes.ts), which list the runes, addresses and outputs that each of the newest blocks touched. Also writes
 * the list of these files.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../contract/sources.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { type ArchiveSources, readBlocks } from '../engine/archive/listedRecords.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import type { StateTables } from '../engine/state/state.ts';
import { emptyIfMissing } from '../errors.ts';
import { exceeds, type Limits } from '../limits.ts';
import { CHANGES_FOLDER, CHANGES_INDEX_PATH } from '../pages/filePaths.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { changesFile, changesIndex, type ListedChanges, type Point } from './changes.ts';
import { digestOf, type TouchedLists, touchedBy } from './changesOfBlocks.sql.ts';
import { knowsSpent } from './unspentOutputs.sql.ts';

/** The output folder, the sink for its files, and the settings of the build. */
interface ChangesForm {
  readonly out: string;
  readonly sink: Pick<FileSink, 'file'>;
  readonly dialect: Dialect;
  readonly limits: Pick<Limits, 'changesBlocks' | 'changesEntries' | 'listedAtOnce'>;
}

/**
 * Writes the files of changes of the newest blocks, except files that the last build wrote, and the list of all these files. `state` must
 * already have the new blocks. Returns the paths of files that are no longer needed.
 */
export async function writeChanges(
  { out, sink, dialect, limits }: ChangesForm,
  input: ArchiveSources['input'],
  state: StateTables,
  store: Store,
): Promise<string[]> {
  const hasSpent = await knowsSpent(state, store);
  const points = await newestBlocks(limits.changesBlocks + 1, input.ends ?? [], state, store);
  const hasMore = exceeds(limits, 'changesBlocks', points.length);
  // If `points` has more blocks than may have files, the lowest block gets no file. It is only `previous` of the block above.
  let previous: Point | undefined = hasMore ? points.shift() : undefined;
  const files = points.map((point) => {
    const { height, hash, content } = point;
    const source = JSON.stringify([height, hash, previous?.height, previous?.hash, content, hasSpent]);
    const file = { ...point, previous, source };
    previous = point;
    return file;
  });
  const known = await store.rows(`FROM ${state.changesFiles}`, { source: text, sha256: text });
  const digests = new Map(known.map((row) => [row.source, row.sha256]));
  const write = (file: (typeof files)[number] | undefined, { lists, cut }: TouchedLists) => {
    if (file === undefined) return;
    const [runes = '[]', addresses = '[]', made = '[]', spent = '[]'] = lists;
    const isCut = cut.some((kind) => hasSpent || kind !== 'spent');
    const of = { runes, addresses, made, spent: hasSpent ? spent : undefined };
    const [path, content] = changesFile({ ...file, lists: of, isCut }, dialect);
    sink.file(path, Buffer.from(content));
    digests.set(file.source, digestOf(content));
  };
  const added = new Map(files.flatMap((file) => (digests.has(file.source) ? [] : [[file.height, file]])));
  for (const file of added.values()) if (file.content === undefined) write(file, { lists: [], cut: [] });
  const blocks = await store.table(
    'changed_blocks',
    columns('block_height BIGINT, records BIGINT'),
    `SELECT block_height, records FROM ${state.blocks} WHERE block_height IN (${[...added.keys()].join(', ') || 'NULL'})`,
  );
  const read = await readBlocks(blocks, { state, input }, store);
  for await (const [height, lists] of touchedBy(blocks, read, limits, store)) write(added.get(height), lists);
  const listed = files.map((file): ListedChanges => ({ ...file, sha256: digests.get(file.source) ?? '' }));
  const index = changesIndex(listed, { most_blocks: limits.changesBlocks, most_entries: limits.changesEntries }, dialect);
  sink.file(CHANGES_INDEX_PATH, Buffer.from(index));
  const rows = files.map(({ source }) => `(${literal(source)}, ${literal(digests.get(source) ?? '')})`);
  await store.run(`DELETE FROM ${state.changesFiles}; ${rows.length === 0 ? '' : `INSERT INTO ${state.changesFiles} VALUES ${rows.join(', ')};`}
    DELETE FROM ${state.changesIndex}; INSERT INTO ${state.changesIndex} VALUES (${literal(digestOf(index))})`);
  const present = new Set(['index', ...files.map(({ height }) => String(height))].map((name) => `${name}.json`));
  return emptyIfMissing(() => readdirSync(join(out, CHANGES_FOLDER)))
    .filter((name) => !present.has(name))
    .map((name) => `${CHANGES_FOLDER}/${name}`);
}

/** A block, and digests of its records and of the outputs that it spends. Without `content`, it has no records. */
interface NewestBlock extends Point {
  readonly content: string | undefined;
}

/**
 * Returns the newest blocks whose hashes are known, ascending: blocks with records, and blocks of `ends`, which may have no records. With
 * data from a node, `ends` has the blocks at the newest heights. Ignores older blocks of `ends`, because the next build may not have their
 * hashes.
 */
async function newestBlocks(count: number, ends: readonly LastRead[], { blocks, tip }: StateTables, store: Store): Promise<NewestBlock[]> {
  const known = await store.rows(
    `SELECT block_height AS height, block_hash AS hash, digest || ' ' || spent_digest AS content FROM ${blocks} ORDER BY block_height DESC LIMIT ${count}`,
    { height: int, hash: text, content: text },
  );
  const [last] = await store.rows(`SELECT block_height AS height FROM ${tip}`, { height: int });
  const heights = new Set(known.map(({ height }) => height));
  const isNew = ({ height }: LastRead) =>
    last !== undefined && height <= last.height && height > last.height - count && !heights.has(height);
  const empty = ends.filter(isNew).map((end) => ({ ...end, content: undefined }));
  return [...known, ...empty]
    .sort((a, b) => b.height - a.height)
    .slice(0, count)
    .reverse();
}
