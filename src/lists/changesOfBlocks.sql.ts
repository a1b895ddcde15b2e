/**
 * Lists of the runes, addresses and outputs that the newest blocks touched, from which the files of changes are made
 * (changes.sql.ts). Only a fixed number of blocks below the tip has files. If a reorganisation lowers the tip, older
 * blocks are among these and need files again. So more blocks have lists than files. The lists of a block are in a file
 * of the cache folder instead of the state, because most builds read only the lists of new blocks.
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../disk/makeFolder.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { hasBytes, replaceFile, writeNew } from '../disk/replaceFile.ts';
import { flag, int, literal, type Store, text } from '../duckdb/store.ts';
import { ChangedArchiveError } from '../engine/archive/storedArchive.ts';
import { JSON_TEXT, needsEscapes } from '../engine/render/renderRecordSql.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { BlockChanges } from '../engine/state/updateState.ts';
import { groupBy } from '../groupBy.ts';
import type { Loaded } from '../input/loadInput.ts';
import { countCrossing, type Limits } from '../limits.ts';
import { TOUCHED } from './changes.ts';

type ListLimits = Pick<Limits, 'changesBlocks' | 'changesEntries' | 'spentBlocks' | 'listedAtOnce'>;

/**
 * Folder of lists in the cache folder. A file has a line for each list of a block. The name of a file is its SHA-256.
 */
const FOLDER = 'touched';

export const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex');

/**
 * Returns the lists of a block in the order of TOUCHED, each as JSON. Throws a ChangedArchiveError if the file is
 * missing or damaged.
 */
export function readLists(cache: string, digest: string): string[] {
  const path = join(cache, FOLDER, digest);
  const isFile = lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const content = isFile ? readRegularFile(path).toString() : '';
  if (digestOf(content) !== digest) throw new ChangedArchiveError(`the cache no longer has the file ${FOLDER}/${digest}`);
  return content.split('\n');
}

/**
 * Replaces the lists of changed blocks, and removes the lists of old blocks. Keeps the files that the last build
 * needed, because the state of the last build stays valid if this build is killed.
 */
export async function updateTouched(
  cache: string,
  limits: ListLimits,
  { kept, spent }: Pick<Loaded, 'kept' | 'spent'>,
  { written, replaced }: Pick<BlockChanges, 'written' | 'replaced'>,
  { blocks, touched }: StateTables,
  store: Store,
): Promise<void> {
  const folder = join(cache, FOLDER);
  makeFolder(folder);
  const known = new Set((await store.rows(`SELECT digest FROM ${touched}`, { digest: text })).map(({ digest }) => digest));
  for (const name of readdirSync(folder)) if (!known.has(name)) rmSync(join(folder, name), { recursive: true });
  const newest = `(SELECT block_height FROM ${blocks} ORDER BY block_height DESC LIMIT ${limits.changesBlocks + limits.spentBlocks})`;
  await store.run(`DELETE FROM ${touched} WHERE block_height IN (SELECT block_height FROM ${replaced}) OR block_height NOT IN ${newest}`);
  await store.run(JSON_TEXT);
  // A block may spend more outputs than it has records.
  const spends = `SELECT block_height, count(*) AS spends FROM ${spent} WHERE block_height IN ${newest} GROUP BY block_height`;
  const added = `SELECT block_height, records + coalesce(spends, 0) AS size FROM ${written} LEFT JOIN (${spends}) USING (block_height)
    WHERE block_height IN ${newest}`;
  for (const portion of await portionsOf(added, limits, store)) {
    const rows = [...(await listsOf(portion, limits, { kept, spent }, store))].map(([height, lists]) => {
      const content = TOUCHED.map((kind) => lists.find((list) => list.kind === kind)?.list ?? '[]').join('\n');
      const [bytes, digest] = [Buffer.from(content), digestOf(content)];
      const path = join(folder, digest);
      if (!hasBytes(path, bytes)) replaceFile(path, (temporary) => writeNew(temporary, bytes));
      const cut = lists.filter(({ is_cut }) => is_cut).map(({ kind }) => kind);
      if (cut.length > 0) countCrossing('changesEntries');
      return `(${height}, ${literal(digest)}, ${literal(cut.join())})`;
    });
    await store.run(`INSERT INTO ${touched} VALUES ${rows.join(', ')}`);
  }
}

interface Portion {
  /** Heights of its blocks, separated by commas. */
  readonly heights: string;
  /** Number of rows of the block with the most rows. A row is a record or a spent output. */
  readonly most: number;
}

/**
 * Divides blocks into portions. All lists of a portion are in memory at the same time. To bound this memory, a portion
 * has only an eighth of `listedAtOnce` rows, because a row has up to four entries of 70 bytes.
 */
async function portionsOf(blocks: string, { listedAtOnce }: Pick<Limits, 'listedAtOnce'>, store: Store): Promise<Portion[]> {
  const portion = `sum(size) OVER (ORDER BY block_height) // ${Math.ceil(listedAtOnce / 8)}`;
  return store.rows(
    `SELECT string_agg(block_height::VARCHAR, ', ') AS heights, max(size) AS most
     FROM (SELECT *, ${portion} AS portion FROM (${blocks})) GROUP BY portion`,
    { heights: text, most: int },
  );
}

/** Returns the lists of blocks by height, each as JSON, cut to `changesEntries` entries. Omits empty lists. */
async function listsOf(
  { heights, most }: Portion,
  { changesEntries }: Pick<Limits, 'changesEntries'>,
  { kept, spent }: Pick<Loaded, 'kept' | 'spent'>,
  store: Store,
) {
  const isIn = `WHERE block_height IN (${heights})`;
  const entries = [
    `'runes' AS kind, rune_id AS entry FROM ${kept} ${isIn}`,
    ...['address', 'receiver_address'].map((column) => `'addresses', ${column} FROM ${kept} ${isIn}`),
    `'made', tx_id || ':' || vout FROM ${kept} ${isIn} AND operation = 'receive'`,
    `'spent', "output" FROM ${spent} ${isIn}`,
  ];
  const distinct = `SELECT DISTINCT * FROM (SELECT block_height, ${entries.join(' UNION ALL SELECT block_height, ')}) WHERE entry IS NOT NULL`;
  // DuckDB keeps lists that list() collects in memory. So if a list may be too long, the SQL first selects only
  // `changesEntries` + 1 entries. The last of them shows that the list is cut. A row has at most two entries of a kind,
  // so `2 * most` is the maximum length of a list.
  const place = 'row_number() OVER (PARTITION BY block_height, kind ORDER BY entry)';
  const needed = 2 * most > changesEntries ? `FROM (${distinct}) QUALIFY ${place} <= ${changesEntries + 1}` : distinct;
  const cut = `SELECT block_height, kind, list_sort(list(entry))[:${changesEntries}] AS entries, count(*) > ${changesEntries} AS is_cut
    FROM (${needed}) GROUP BY block_height, kind`;
  // Outputs have no character that JSON must escape. Of the other lists, hardly any has one, so one check of all its
  // entries decides whether each entry is escaped.
  const escaped = `CASE WHEN kind IN ('runes', 'addresses') AND ${needsEscapes(`array_to_string(entries, ' ')`)}
    THEN list_transform(entries, lambda entry: json_text(entry)) ELSE entries END`;
  const rows = await store.rows(
    `SELECT block_height, kind, '["' || array_to_string(${escaped}, '","') || '"]' AS list, is_cut FROM (${cut})`,
    { block_height: int, kind: text, list: text, is_cut: flag },
  );
  return groupBy(rows, ({ block_height }) => block_height);
}
