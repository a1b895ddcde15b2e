/**
 * Writes the files of changes (changes.ts). A reorganisation may lower the tip. Then older blocks need files again, so
 * the cache folder keeps the lists of more blocks than have files, each block's in a file of its own: most builds read
 * none of them.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../contract/sources.ts';
import { makeFolder } from '../disk/makeFolder.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { hasBytes, replaceFile, writeNew } from '../disk/replaceFile.ts';
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
  /** Folder with a folder of lists: the cache folder, or a temporary folder in a dry run. */
  readonly cache: string;
  readonly sink: Pick<FileSink, 'file'>;
  readonly dialect: Dialect;
  readonly limits: Pick<Limits, 'changesBlocks' | 'changesEntries' | 'spentBlocks'>;
}

/**
 * Writes the files of the newest blocks that the last build did not write, and the list of all files. `state` must
 * already have the new blocks. Returns the paths of files that are no longer needed. Rejects with a ChangedArchiveError
 * if the tip is so much lower than before that the cache no longer has the lists of a block, or if the file of such
 * lists is damaged.
 */
export async function writeChanges(
  { out, cache, sink, dialect, limits }: ChangesForm,
  loaded: Pick<Loaded, 'kept' | 'spent' | 'ends'>,
  blocks: Pick<BlockChanges, 'written' | 'replaced'>,
  state: StateTables,
  store: Store,
): Promise<string[]> {
  await updateTouched(join(cache, LISTS_FOLDER), limits, loaded, blocks, state, store);
  const hasSpent = await knowsSpent(state, store);
  const points = await newestBlocks(limits.changesBlocks + 1, loaded.ends ?? [], state, store);
  const hasMore = exceeds(limits, 'changesBlocks', points.length);
  const touched = await store.rows(`FROM ${state.touched}`, { block_height: int, digest: text, cut: text });
  const listsOf = new Map(touched.map((row) => [row.block_height, row]));
  const known = await store.rows(`FROM ${state.changesFiles}`, { source: text, sha256: text });
  const before = new Map(known.map((row) => [row.source, row.sha256]));
  const listed: (ListedChanges & { readonly source: string })[] = [];
  // If there is one block more than files, the lowest block gets no file. It is only the `previous` of the next block.
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

export const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex');

/**
 * Number of blocks whose lists are in memory together. A block has four lists of up to `changesEntries` 70-byte
 * entries.
 */
const BLOCKS_AT_ONCE = 16;

const portionsOf = <Block>(blocks: readonly Block[]): Block[][] =>
  Array.from({ length: Math.ceil(blocks.length / BLOCKS_AT_ONCE) }, (_, i) => blocks.slice(i * BLOCKS_AT_ONCE, (i + 1) * BLOCKS_AT_ONCE));

/** Folder of lists in the cache folder. A file has a line for each list of a block. Its name is its SHA-256. */
const LISTS_FOLDER = 'touched';

/** Returns the lists of a block in the order of TOUCHED, each as JSON. */
function readLists(cache: string, digest: string): string[] {
  const path = join(cache, LISTS_FOLDER, digest);
  const content = existsSync(path) ? readRegularFile(path).toString() : '';
  if (digestOf(content) !== digest) throw new ChangedArchiveError(`the cache no longer has the file ${LISTS_FOLDER}/${digest}`);
  return content.split('\n');
}

/**
 * Replaces the lists of changed blocks, and removes those of old blocks. Removes only files that the last build no
 * longer needed, because the state of the last build stays valid if this build is killed.
 */
async function updateTouched(
  folder: string,
  { changesBlocks, changesEntries, spentBlocks }: ChangesForm['limits'],
  { kept, spent }: Pick<Loaded, 'kept' | 'spent'>,
  { written, replaced }: Pick<BlockChanges, 'written' | 'replaced'>,
  { blocks, touched }: StateTables,
  store: Store,
): Promise<void> {
  makeFolder(folder);
  const known = new Set((await store.rows(`SELECT digest FROM ${touched}`, { digest: text })).map(({ digest }) => digest));
  for (const name of readdirSync(folder)) if (!known.has(name)) rmSync(join(folder, name), { recursive: true });
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
  for (const some of portionsOf(heights.map(({ height }) => height))) {
    const found = await store.rows(
      `SELECT block_height, kind, '["' || array_to_string(${escaped}, '","') || '"]' AS list, is_cut
       FROM (SELECT block_height, kind, list_sort(list(entry))[:${changesEntries}] AS entries, count(*) > ${changesEntries} AS is_cut
         FROM ${all} WHERE block_height IN (${some.join(', ')}) GROUP BY block_height, kind)`,
      { block_height: int, kind: text, list: text, is_cut: flag },
    );
    const rows = [...groupBy(found, ({ block_height }) => block_height)].map(([height, lists]) => {
      const content = TOUCHED.map((kind) => lists.find((list) => list.kind === kind)?.list ?? '[]').join('\n');
      const digest = digestOf(content);
      const path = join(folder, digest);
      const bytes = Buffer.from(content);
      if (!hasBytes(path, bytes)) replaceFile(path, (temporary) => writeNew(temporary, bytes));
      const cut = lists.filter(({ is_cut }) => is_cut).map(({ kind }) => kind);
      if (cut.length > 0) countCrossing('changesEntries');
      return `(${height}, ${literal(digest)}, ${literal(cut.join())})`;
    });
    await store.run(`INSERT INTO ${touched} VALUES ${rows.join(', ')}`);
  }
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
