/** Lists the runes, addresses and outputs that blocks touched, for the files of changes (changes.sql.ts). */

import { createHash } from 'node:crypto';
import { portionsOf } from '../duckdb/blockRanges.ts';
import { flag, int, type Store, text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import type { BlockInput } from '../engine/archive/listedRecords.ts';
import { JSON_TEXT, needsEscapes } from '../engine/render/renderRecordSql.ts';
import { groupBy } from '../groupBy.ts';
import { countCrossing, type Limits } from '../limits.ts';
import { TOUCHED } from './changes.ts';

type ListLimits = Pick<Limits, 'changesEntries' | 'listedAtOnce'>;

export const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex');

/** The lists of a block, in the order of TOUCHED, each as JSON. `cut` has the kinds of the lists that are not complete. */
export interface TouchedLists {
  readonly lists: readonly string[];
  readonly cut: readonly string[];
}

/** Yields the lists of blocks with their heights. */
export async function* touchedBy(
  blocks: TableWith<'block_height' | 'records'>,
  read: BlockInput,
  limits: ListLimits,
  store: Store,
): AsyncGenerator<readonly [height: number, lists: TouchedLists]> {
  await store.run(JSON_TEXT);
  // A block may spend more outputs than it has records.
  const spends = `SELECT block_height, count(*) AS spends FROM ${read.spent} GROUP BY block_height`;
  const sizes = `SELECT block_height, records + coalesce(spends, 0) AS records FROM ${blocks} LEFT JOIN (${spends}) USING (block_height) ORDER BY block_height`;
  // All lists of a portion are in memory at the same time, and a row has up to four entries, two of them addresses of at most 512 bytes.
  const most = Math.ceil(limits.listedAtOnce / 32);
  for (const portion of portionsOf(await store.rows(sizes, { block_height: int, records: int }), most)) {
    for (const [height, lists] of await listsOf(portion, limits, read, store)) {
      const cut = lists.filter(({ is_cut }) => is_cut).map(({ kind }) => kind);
      if (cut.length > 0) countCrossing('changesEntries');
      yield [height, { lists: TOUCHED.map((kind) => lists.find((list) => list.kind === kind)?.list ?? '[]'), cut }];
    }
  }
}

/** Returns the lists of blocks by height, each as JSON, cut to `changesEntries` entries. Omits empty lists. */
async function listsOf(
  portion: readonly { readonly block_height: number; readonly records: number }[],
  { changesEntries }: Pick<Limits, 'changesEntries'>,
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
  // DuckDB keeps lists that list() collects in memory. So if a list may be too long, the SQL first selects only `changesEntries` + 1
  // entries. The last of them shows that the list is cut. A row has at most two entries of a kind, so `2 * most` is the maximum length of a
  // list.
  const place = 'row_number() OVER (PARTITION BY block_height, kind ORDER BY entry)';
  const needed = 2 * most > changesEntries ? `FROM (${distinct}) QUALIFY ${place} <= ${changesEntries + 1}` : distinct;
  const cut = `SELECT block_height, kind, list_sort(list(entry))[:${changesEntries}] AS entries, count(*) > ${changesEntries} AS is_cut
    FROM (${needed}) GROUP BY block_height, kind`;
  // Outputs have no character that JSON must escape. Of the other lists, hardly any has one, so one check of all its entries decides
  // whether each entry is escaped.
  const escaped = `CASE WHEN kind IN ('runes', 'addresses') AND ${needsEscapes(`array_to_string(entries, ' ')`)}
    THEN list_transform(entries, lambda entry: json_text(entry)) ELSE entries END`;
  const rows = await store.rows(
    `SELECT block_height, kind, '["' || array_to_string(${escaped}, '","') || '"]' AS list, is_cut FROM (${cut})`,
    { block_height: int, kind: text, list: text, is_cut: flag },
  );
  return groupBy(rows, ({ block_height }) => block_height);
}
