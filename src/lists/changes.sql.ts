/** Writes the files of changes (changes.ts), and the list of these files. */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../contract/sources.ts';
import { portionsOf } from '../duckdb/blockRanges.ts';
import { flag, int, literal, type Store, text } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import { type ArchiveSources, type BlockInput, readBlocks } from '../engine/archive/listedRecords.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import { JSON_TEXT, needsEscapes } from '../engine/render/renderRecordSql.ts';
import type { StateTables } from '../engine/state/state.ts';
import { emptyIfMissing } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import { countCrossing, exceeds, type Limits } from '../limits.ts';
import { CHANGES_FOLDER, CHANGES_INDEX_PATH } from '../pages/filePaths.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { changesFile, changesIndex, type Point, TOUCHED, type TouchedList } from './changes.ts';
import { knowsSpent } from './unspentOutputs.sql.ts';

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
  const kinds = TOUCHED.filter((kind) => hasSpent || kind !== 'spent');
  const write = (file: (typeof files)[number] | undefined, touched: readonly TouchedList[]) => {
    if (file === undefined) return;
    const lists = kinds.map((kind) => touched.find((list) => list.kind === kind) ?? { kind, list: '[]', is_cut: false });
    const [path, content] = changesFile({ ...file, lists }, dialect);
    sink.file(path, Buffer.from(content));
    digests.set(file.source, digestOf(content));
  };
  const added = new Map(files.flatMap((file) => (digests.has(file.source) ? [] : [[file.height, file]])));
  for (const file of added.values()) if (file.content === undefined) write(file, []);
  const blocks = await store.table(
    'changed_blocks',
    columns('block_height BIGINT, records BIGINT'),
    `SELECT block_height, records FROM ${state.blocks} WHERE block_height IN (${[...added.keys()].join(', ') || 'NULL'})`,
  );
  const read = await readBlocks(blocks, { state, input }, store);
  for await (const [height, lists] of touchedBy(blocks, read, limits, store)) write(added.get(height), lists);
  const listed = files.map((file) => ({ ...file, sha256: digests.get(file.source) ?? '' }));
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

const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex');

/** Yields the lists of blocks with their heights. Omits empty lists. */
async function* touchedBy(
  blocks: TableWith<'block_height' | 'records'>,
  read: BlockInput,
  limits: ChangesForm['limits'],
  store: Store,
): AsyncGenerator<readonly [height: number, lists: readonly TouchedList[]]> {
  await store.run(JSON_TEXT);
  // A block may spend more outputs than it has records.
  const spends = `SELECT block_height, count(*) AS spends FROM ${read.spent} GROUP BY block_height`;
  const sizes = `SELECT block_height, records + coalesce(spends, 0) AS records FROM ${blocks} LEFT JOIN (${spends}) USING (block_height) ORDER BY block_height`;
  // All lists of a portion are in memory at the same time, and a row has up to four entries, two of them addresses of at most 512 bytes.
  const most = Math.ceil(limits.listedAtOnce / 32);
  for (const portion of portionsOf(await store.rows(sizes, { block_height: int, records: int }), most)) {
    for (const [height, lists] of await listsOf(portion, limits, read, store)) {
      if (lists.some((list) => list.is_cut)) countCrossing('changesEntries');
      yield [height, lists];
    }
  }
}

async function listsOf(
  portion: readonly { readonly block_height: number; readonly records: number }[],
  { changesEntries }: ChangesForm['limits'],
  { kept, spent }: BlockInput,
  store: Store,
) {
  const isIn = `WHERE block_height IN (${portion.map((block) => block.block_height).join(', ')})`;
  const most = portion.reduce((max, { records }) => Math.max(max, records), 0);
  const entries = [
    `'runes' AS kind, rune_id AS entry FROM ${kept} ${isIn}`,
    ...['address', 'receiver_address'].map((column) => `'addresses', ${column} FROM ${kept} ${isIn}`),
    `'made', tx_id || ':' || vout FROM ${kept} ${isIn} AND operation = 'receive'`,
    `'spent', "output" FROM ${spent} ${isIn}`,
  ];
  const distinct = `SELECT DISTINCT * FROM (SELECT block_height, ${entries.join(' UNION ALL SELECT block_height, ')}) WHERE entry IS NOT NULL`;
  // DuckDB keeps lists that list() collects in memory. So if a list may be too long (a row has at most two entries of a kind), the SQL
  // first selects only `changesEntries` + 1 entries. The last of them shows that the list is cut.
  const place = 'row_number() OVER (PARTITION BY block_height, kind ORDER BY entry)';
  const needed = 2 * most > changesEntries ? `FROM (${distinct}) QUALIFY ${place} <= ${changesEntries + 1}` : distinct;
  const cut = `SELECT block_height, kind, list_sort(list(entry))[:${changesEntries}] AS entries, count(*) > ${changesEntries} AS is_cut
    FROM (${needed}) GROUP BY block_height, kind`;
  // Outputs have no character that JSON must escape. Hardly any other list has one, so one check of all entries decides for each of them.
  const escaped = `CASE WHEN kind IN ('runes', 'addresses') AND ${needsEscapes(`array_to_string(entries, ' ')`)}
    THEN list_transform(entries, lambda entry: json_text(entry)) ELSE entries END`;
  const rows = await store.rows(
    `SELECT block_height, kind, '["' || array_to_string(${escaped}, '","') || '"]' AS list, is_cut FROM (${cut})`,
    { block_height: int, kind: text, list: text, is_cut: flag },
  );
  return groupBy(rows, ({ block_height }) => block_height);
}
