/**
 * Finds out which outputs the blocks of a mirror spent. Pages do not say this. But the documents of a level of outputs
 * (lists/unspentOutputs.ts) have every output that its blocks made and did not spend, and every older output that they
 * spent. So an output without a document in its own level was spent in this level. If two outputs of an address have the
 * same runes and amounts, no check notices if the wrong one of them is listed as spent.
 */

import { rowParts } from '../duckdb/sortedRows.ts';
import { text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { linesOf } from '../engine/archive/documentWriter.ts';
import { countBefore } from '../format/binarySearch.ts';
import { levelRanges } from '../format/levels.ts';
import { SPENT as SPENT_VALUE } from '../lists/unspentOutputs.ts';
import type { ListsCheck } from './verification.ts';

/** Spent outputs. `block_height` is the highest block of the level that spent the output, and `made` the block that made it. */
const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR, made BIGINT');
/** Runes in unspent outputs. */
const HELD = columns('address VARCHAR, rune_id VARCHAR, amount VARCHAR');

export interface Outputs {
  readonly spent: Table<typeof SPENT>;
  readonly held: Table<typeof HELD>;
}

/** Returns the SQL expression of the highest block with records in the level that has a height. */
function levelOf(height: string, { lists, blocks }: Pick<ListsCheck, 'lists' | 'blocks'>): string {
  const highest = (last: number) => blocks[countBefore(blocks.length, (i) => (blocks[i]?.height ?? 0) <= last) - 1]?.height ?? last;
  const cases = levelRanges(lists.tip, lists, lists.lowest).map(({ last }) => `WHEN ${height} <= ${last} THEN ${highest(last)}`);
  return `CASE ${cases.join(' ')} ELSE ${lists.tip} END`;
}

/** Bytes of memory that DuckDB needs for a row of the statements below. */
const ROW_BYTES = 800;

/** `received` is SQL of the runes that outputs received: block_height, output, address, rune_id, amount. */
export async function findSpent(received: string, check: ListsCheck): Promise<Outputs> {
  const { archive, limits, lists, store } = check;
  const documents = function* () {
    for (const level of lists.outputs?.outputs ?? [])
      for (const { key, bytes } of linesOf(archive, level)) yield [key, level.last, bytes === `\t${SPENT_VALUE}` ? 1 : 0];
  };
  const listed = await store.append('listed', columns('output VARCHAR, level BIGINT, is_spent INTEGER'), documents());
  const spent = await store.table('spent_outputs', SPENT);
  const held = await store.table('held', HELD);
  const rows = `SELECT "output", ${levelOf('block_height', check)} AS level, NULL::INTEGER AS is_spent, block_height AS made, address, rune_id, amount FROM (${received})
    UNION ALL BY NAME SELECT * REPLACE (${levelOf('level', check)} AS level) FROM ${listed}`;
  for await (const part of rowParts({ rows, key: '"output"', rowBytes: ROW_BYTES }, limits, store))
    await store.run(`CREATE OR REPLACE TEMP TABLE part_outputs AS ${part};
      CREATE OR REPLACE TEMP TABLE part_ends AS SELECT "output", address, made,
          CASE WHEN own IS DISTINCT FROM level THEN level WHEN removed > level THEN removed END AS block_height
        FROM (SELECT "output", max(address) AS address, max(made) AS made, max(level) FILTER (is_spent IS NULL) AS level,
            max(level) FILTER (is_spent = 0) AS own, min(level) FILTER (is_spent = 1) AS removed FROM part_outputs GROUP BY "output")
        WHERE level IS NOT NULL;
      INSERT INTO ${spent} BY NAME SELECT * FROM part_ends WHERE block_height IS NOT NULL;
      INSERT INTO ${held} SELECT address, rune_id, amount FROM part_outputs
        SEMI JOIN (SELECT "output" FROM part_ends WHERE block_height IS NULL) USING ("output") WHERE is_spent IS NULL`);
  await store.run(`DROP TABLE IF EXISTS part_outputs; DROP TABLE IF EXISTS part_ends; DROP TABLE ${listed}`);
  return { spent, held };
}

/** Outputs that files say are spent. */
interface Claims {
  /** SQL with the columns block_height, output and address. */
  readonly rows: string;
  readonly hasAddresses: boolean;
  /** SQL condition for spent outputs that the files must have. */
  readonly isDue: string;
  /** Begins a finding. An output follows. */
  readonly wrong: string;
}

/** Compares the outputs that files say are spent with those that are spent. Reports the first difference. */
export async function compareSpent({ rows, hasAddresses, isDue, wrong }: Claims, { spent }: Outputs, check: ListsCheck): Promise<void> {
  const { findings, limits, store } = check;
  const all = `SELECT "output", block_height AS height, ${levelOf('block_height', check)} AS level, coalesce(address, '') AS address, NULL::BIGINT AS made FROM (${rows})
    UNION ALL BY NAME SELECT "output", block_height AS level, coalesce(address, '') AS address, made FROM ${spent}`;
  const isWrong = ['count(height) > 1', 'count(made) = 0', 'min(level) <> max(level)', 'min(height) < max(made)'];
  if (hasAddresses) isWrong.push('min(address) <> max(address)');
  for await (const part of rowParts({ rows: all, key: '"output"', rowBytes: ROW_BYTES }, limits, store)) {
    const [first] = await store.rows(
      `SELECT "output" AS name FROM (${part}) GROUP BY "output"
       HAVING CASE WHEN count(height) > 0 THEN ${isWrong.join(' OR ')} ELSE bool_or(${isDue}) END ORDER BY name LIMIT 1`,
      { name: text },
    );
    if (first !== undefined) return findings.add(`${wrong} ${first.name} was spent`);
  }
}

/**
 * Returns SQL that selects the heights of blocks that send and burn other units than are in the outputs that they spend.
 * Both are the same for each rune and address, but units without an address that are burned may also be minted or
 * premined. All parameters are SQL: the records of the blocks, what outputs received, and the spent outputs.
 */
export function differingBlocks(records: string, received: string, spent: string): string {
  const units = (amount: string) => `replace(coalesce(${amount}, '0'), '.', '')::BIGNUM AS units`;
  const sums = (rows: string) => `SELECT height, rune_id, address, sum(units) AS units FROM (${rows}) GROUP BY ALL`;
  const moved = `SELECT block_height AS height, rune_id, coalesce(address, '') AS address, operation, ${units('amount')}
    FROM (${records}) WHERE operation IN ('send', 'burn')`;
  const held = `SELECT s.block_height AS height, r.rune_id, coalesce(r.address, '') AS address, ${units('r.amount')}
    FROM (${received}) AS r JOIN (${spent}) AS s USING ("output")`;
  return `WITH moved AS (${moved})
    SELECT DISTINCT height FROM (${sums('FROM moved')}) AS m FULL JOIN (${sums(held)}) AS s USING (height, rune_id, address)
    WHERE coalesce(m.units, 0::BIGNUM) <> coalesce(s.units, 0::BIGNUM)
      AND NOT (address = '' AND (height, rune_id) IN (SELECT (height, rune_id) FROM moved WHERE address = '' AND operation = 'burn'))`;
}
