/**
 * Writes the files of changes (changes.ts). A reorganisation may lower the tip. Then older blocks need files again, so
 * the state keeps the lists of more blocks than have files.
 */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../contract/sources.ts';
import { flag, int, literal, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { ChangedArchiveError } from '../engine/archive/storedArchive.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import { CHARACTERS_TO_ESCAPE, JSON_TEXT } from '../engine/render/renderRecordSql.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { BlockChanges } from '../engine/state/updateState.ts';
import { emptyIfMissing } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import type { Loaded } from '../input/loadInput.ts';
import { countCrossing, exceeds, type Limits } from '../limits.ts';
import { CHANGES_FOLDER, CHANGES_INDEX_PATH } from '../pages/filePaths.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { changesFile, changesIndex, type ListedChanges, type Point, TOUCHED } from './changes.ts';
import { knowsSpent } from './unspentOutputs.sql.ts';

/** The output folder, the sink for its files, and the settings of the build. */
interface ChangesForm {
  readonly out: string;
  readonly sink: Pick<FileSink, 'file'>;
  readonly dialect: Dialect;
  readonly limits: Pick<Limits, 'changesBlocks' | 'changesEntries' | 'spentBlocks'>;
}

/**
 * Writes the files of the newest blocks, and the list of these files. `state` must already have the new blocks. Returns
 * the paths of files that are no longer needed. Rejects with a ChangedArchiveError if the tip is so much lower than
 * before that the state no longer has the lists of a block.
 */
export async function writeChanges(
  { out, sink, dialect, limits }: ChangesForm,
  loaded: Pick<Loaded, 'kept' | 'spent' | 'ends'>,
  blocks: Pick<BlockChanges, 'written' | 'replaced'>,
  state: StateTables,
  store: Store,
): Promise<string[]> {
  await updateTouched(limits, loaded, blocks, state, store);
  const hasSpent = await knowsSpent(state, store);
  const points = await newestBlocks(limits.changesBlocks + 1, loaded.ends ?? [], state, store);
  const hasMore = exceeds(limits, 'changesBlocks', points.length);
  const listed: ListedChanges[] = [];
  // If there is one block more than files, the lowest block gets no file. It is only the `previous` of the next block.
  let previous: Point | undefined = hasMore ? points.shift() : undefined;
  for (const some of portionsOf(points)) {
    const heights = some.map(({ height }) => height);
    const found = await store.rows(
      `SELECT block_height, kind, list, is_cut FROM ${state.touched} WHERE block_height IN (${heights.join(', ')})`,
      { block_height: int, kind: text, list: text, is_cut: flag },
    );
    const byHeight = groupBy(found, ({ block_height }) => block_height);
    for (const { isEmpty, ...point } of some) {
      const rows = byHeight.get(point.height) ?? [];
      if (rows.length === 0 && !isEmpty) throw new ChangedArchiveError('the build needs changes of blocks that the cache no longer has');
      const listOf = (name: string) => rows.find(({ kind }) => kind === name)?.list ?? '[]';
      const [runes, addresses, made, spent] = TOUCHED.map(listOf);
      const lists = { runes, addresses, made, spent: hasSpent ? spent : undefined };
      const isCut = rows.some(({ kind, is_cut }) => is_cut && (hasSpent || kind !== 'spent'));
      if (isCut) countCrossing('changesEntries');
      const [path, content] = changesFile({ ...point, previous, lists, isCut }, dialect);
      sink.file(path, Buffer.from(content));
      listed.push({ ...point, sha256: digestOf(content) });
      previous = point;
    }
  }
  const index = changesIndex(listed, { most_blocks: limits.changesBlocks, most_entries: limits.changesEntries }, dialect);
  sink.file(CHANGES_INDEX_PATH, Buffer.from(index));
  await store.run(`DELETE FROM ${state.changesIndex}; INSERT INTO ${state.changesIndex} VALUES (${literal(digestOf(index))})`);
  const present = new Set(['index', ...listed.map(({ height }) => String(height))].map((name) => `${name}.json`));
  return emptyIfMissing(() => readdirSync(join(out, CHANGES_FOLDER)))
    .filter((name) => !present.has(name))
    .map((name) => `${CHANGES_FOLDER}/${name}`);
}

export const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex');

/**
 * Number of blocks whose lists are in memory together. A block has four lists of up to `changesEntries` 70-byte
 * entries.
 */
const BLOCKS_AT_ONCE = 16;

const portionsOf = <Block>(blocks: readonly Block[]): Block[][] =>
  Array.from({ length: Math.ceil(blocks.length / BLOCKS_AT_ONCE) }, (_, i) => blocks.slice(i * BLOCKS_AT_ONCE, (i + 1) * BLOCKS_AT_ONCE));

/** Replaces the lists of changed blocks in the state, and removes the lists of old blocks. */
async function updateTouched(
  { changesBlocks, changesEntries, spentBlocks }: ChangesForm['limits'],
  { kept, spent }: Pick<Loaded, 'kept' | 'spent'>,
  { written, replaced }: Pick<BlockChanges, 'written' | 'replaced'>,
  { blocks, touched }: StateTables,
  store: Store,
): Promise<void> {
  const newest = `(SELECT block_height FROM ${blocks} ORDER BY block_height DESC LIMIT ${changesBlocks + spentBlocks})`;
  await store.run(`DELETE FROM ${touched} WHERE block_height IN (SELECT block_height FROM ${replaced}) OR block_height NOT IN ${newest}`);
  const entries = [
    `{kind: 'runes', entry: rune_id}`,
    ...['address', 'receiver_address'].map((column) => `{kind: 'addresses', entry: ${column}}`),
    `{kind: 'made', entry: CASE WHEN operation = 'receive' THEN tx_id || ':' || vout END}`,
  ];
  const isNew = `block_height IN (SELECT block_height FROM ${written}) AND block_height IN ${newest}`;
  const all = await store.table(
    'touched',
    columns('block_height BIGINT, kind VARCHAR, entry VARCHAR'),
    `SELECT DISTINCT block_height, each.kind AS kind, each.entry AS entry FROM (
       SELECT block_height, unnest([${entries.join(', ')}]) AS each FROM ${kept} WHERE ${isNew}
       UNION ALL SELECT block_height, {kind: 'spent', entry: "output"} FROM ${spent} WHERE ${isNew})
     WHERE each.entry IS NOT NULL`,
  );
  await store.run(JSON_TEXT);
  const heights = await store.rows(`SELECT DISTINCT block_height AS height FROM ${all} ORDER BY height`, { height: int });
  // Hardly any list has a character to escape, so one check of all its entries decides whether each entry is escaped.
  const escaped = `CASE WHEN regexp_matches(array_to_string(entries, ' '), '${CHARACTERS_TO_ESCAPE}')
    THEN list_transform(entries, lambda entry: json_text(entry)) ELSE entries END`;
  for (const some of portionsOf(heights.map(({ height }) => height)))
    await store.run(`INSERT INTO ${touched} SELECT block_height, kind, '["' || array_to_string(${escaped}, '","') || '"]', is_cut
      FROM (SELECT block_height, kind, list_sort(list(entry))[:${changesEntries}] AS entries, count(*) > ${changesEntries} AS is_cut
        FROM ${all} WHERE block_height IN (${some.join(', ')}) GROUP BY block_height, kind)`);
  await store.run(`DROP TABLE ${all}`);
}

/**
 * Returns the newest blocks whose hashes are known, ascending. `ends` has hashes of blocks that may be empty. With data
 * from a node, it has those of the newest heights. Ignores older blocks of `ends`, because the next build may not have
 * their hashes.
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
