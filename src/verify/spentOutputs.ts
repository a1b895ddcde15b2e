/**
 * Finds out which outputs the blocks of a mirror spent. Pages do not say this. But the documents of a level of outputs
 * (lists/unspentOutputs.ts) have every output that its blocks made and did not spend, and every older output that they spent. So an output
 * without a document in its own level was spent in this level. If two outputs of an address have the same runes and amounts, no check
 * notices if the wrong one of them is listed as spent.
 */
import { rowParts } from '../duckdb/sortedRows.ts';
import { text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { linesOf, type StoredArchive } from '../engine/archive/storedArchive.ts';
import { countBefore } from '../format/binarySearch.ts';
import { levelRanges } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import { SPENT as SPENT_VALUE } from '../lists/unspentOutputs.ts';
import type { Verification } from './verification.ts';

/** Spent outputs. `block_height` is the highest block of the level that spent the output, and `made` the block that made it. */
const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR, made BIGINT');
/** Runes in unspent outputs. */
const HELD = columns('address VARCHAR, rune_id VARCHAR, amount VARCHAR');

export interface Outputs {
  readonly spent: Table<typeof SPENT>;
  readonly held: Table<typeof HELD>;
  /** Findings: for each of the claims, the first output about which it is wrong. */
  readonly wrong: readonly string[];
}

/** Outputs that files say are spent. */
export interface Claims {
  /** SQL with the columns block_height, output and address. */
  readonly rows: string;
  readonly hasAddresses: boolean;
  /** SQL condition for spent outputs that the files must have. */
  readonly isDue: string;
  /** Begins a finding. An output follows. */
  readonly wrong: string;
}

/** Returns the SQL expression of the highest block with records in the level that has a height. */
function levelOf(height: string, lists: ListTables, blocks: Verification['blocks']): string {
  const highest = (last: number) => blocks[countBefore(blocks.length, (i) => (blocks[i]?.height ?? 0) <= last) - 1]?.height ?? last;
  const cases = levelRanges(lists.tip, lists, lists.lowest).map(({ last }) => `WHEN ${height} <= ${last} THEN ${highest(last)}`);
  return `CASE ${cases.join(' ')} ELSE ${lists.tip} END`;
}

/** Bytes of memory that DuckDB needs for a row of the statements below. */
const ROW_BYTES = 800;

/**
 * Finds the spent outputs of the lists of an archive, and compares them with those that files claim. `received` is SQL of the runes that
 * outputs received: block_height, output, address, rune_id, amount.
 */
export async function findSpent(
  received: string,
  claims: readonly Claims[],
  archive: StoredArchive,
  lists: ListTables,
  { blocks, limits, store }: Verification,
): Promise<Outputs> {
  const documents = function* () {
    for (const level of lists.outputs?.outputs ?? [])
      for (const { key, bytes } of linesOf(archive, level)) yield [key, level.last, bytes === `\t${SPENT_VALUE}` ? 1 : 0];
  };
  const listed = await store.append('listed', columns('output VARCHAR, level BIGINT, is_spent INTEGER'), documents());
  const spent = await store.table('spent_outputs', SPENT);
  const held = await store.table('held', HELD);
  const at = (height: string) => `${levelOf(height, lists, blocks)} AS level`;
  const rows = [
    `SELECT NULL::INTEGER AS claim, "output", ${at('block_height')}, NULL::INTEGER AS is_spent, block_height AS made, address, rune_id, amount FROM (${received})`,
    `SELECT * REPLACE (${at('level')}) FROM ${listed}`,
    ...claims.map(
      (claim, i) =>
        `SELECT ${i} AS claim, "output", ${at('block_height')}, block_height AS height, coalesce(address, '') AS address FROM (${claim.rows})`,
    ),
  ].join(' UNION ALL BY NAME ');
  const wrong = new Map<Claims, string>();
  for await (const part of rowParts({ rows, key: '"output"', rowBytes: ROW_BYTES }, limits, store)) {
    await store.run(`CREATE OR REPLACE TEMP TABLE part_outputs AS ${part};
      CREATE OR REPLACE TEMP TABLE part_ends AS SELECT "output", address, made,
          CASE WHEN own IS DISTINCT FROM level THEN level WHEN removed > level THEN removed END AS block_height
        FROM (SELECT "output", max(address) AS address, max(made) AS made, max(level) FILTER (is_spent IS NULL) AS level,
            max(level) FILTER (is_spent = 0) AS own, min(level) FILTER (is_spent = 1) AS removed
          FROM part_outputs WHERE claim IS NULL GROUP BY "output")
        WHERE level IS NOT NULL;
      INSERT INTO ${spent} BY NAME SELECT * FROM part_ends WHERE block_height IS NOT NULL;
      INSERT INTO ${held} SELECT address, rune_id, amount FROM part_outputs
        SEMI JOIN (SELECT "output" FROM part_ends WHERE block_height IS NULL) USING ("output") WHERE made IS NOT NULL`);
    for (const [i, claim] of claims.entries()) {
      if (wrong.has(claim)) continue;
      const isWrong = ['count(height) > 1', 'count(made) = 0', 'min(level) <> max(level)', 'min(height) < max(made)'];
      if (claim.hasAddresses) isWrong.push('min(address) <> max(address)');
      const [first] = await store.rows(
        `SELECT "output" AS name FROM (SELECT "output", level, height, address, NULL::BIGINT AS made FROM part_outputs WHERE claim = ${i}
           UNION ALL BY NAME SELECT "output", block_height AS level, coalesce(address, '') AS address, made FROM part_ends WHERE block_height IS NOT NULL)
         GROUP BY "output" HAVING CASE WHEN count(height) > 0 THEN ${isWrong.join(' OR ')} ELSE bool_or(${claim.isDue}) END ORDER BY name LIMIT 1`,
        { name: text },
      );
      if (first !== undefined) wrong.set(claim, `${claim.wrong} ${first.name} was spent`);
    }
  }
  await store.run(`DROP TABLE IF EXISTS part_outputs; DROP TABLE IF EXISTS part_ends; DROP TABLE ${listed}`);
  return { spent, held, wrong: [...wrong.values()] };
}
