/**
 * Hash, number and MD5 of blocks' ledger rows, by SQL that means the same to PostgreSQL (a table) and DuckDB (a pulled file).
 */
import { LEDGER_FIELDS } from '../contract/fields.ts';
import { parseHexId } from '../pages/lists.ts';
import type { BlockIdentity } from './block.ts';

/** Cells as text: NULL is bare, everything else is quoted. Integers may be NUMERIC in a table; a file has them as BIGINT. */
const CELLS = LEDGER_FIELDS.map(({ column, kind }) => {
  const text = `CAST(${kind === 'integer' ? `CAST("${column}" AS BIGINT)` : `"${column}"`} AS VARCHAR)`;
  return `coalesce('"' || replace(${text}, '"', '""') || '"', 'NULL')`;
});

/**
 * SQL of the blocks at these heights, a row each; blocks without ledger rows are left out. `withRows` adds the MD5. It sorts the MD5s of single
 * rows, because neither a table nor a query promises an order.
 */
export function identitiesSql(from: string, heights: readonly number[], withRows: boolean): string {
  const rowDigest = withRows ? `md5(concat_ws(',', ${CELLS.join(', ')}))` : 'NULL';
  const digest = withRows ? `md5(string_agg(row_md5, '' ORDER BY row_md5 COLLATE "C"))` : 'NULL';
  return `SELECT CAST(block_height AS VARCHAR) AS height, min(block_hash) AS hash, CAST(count(*) AS VARCHAR) AS records, ${digest} AS rows_md5
    FROM (SELECT block_height, block_hash, ${rowDigest} AS row_md5 FROM ${from} WHERE block_height IN (${heights.join(', ')})) AS cells
    GROUP BY block_height`;
}

/** Identities by height from the rows of `identitiesSql`; a height without a row is a block without records. */
export function readIdentityRows(
  rows: readonly Readonly<Record<string, unknown>>[],
  heights: readonly number[],
): Map<number, BlockIdentity> {
  const identities = new Map<number, BlockIdentity>(heights.map((height) => [height, { hash: '', records: 0 }]));
  for (const { height, hash, records, rows_md5: md5 } of rows) {
    const identity = { hash: parseHexId(String(hash)) ?? '', records: Number(records) };
    identities.set(Number(height), typeof md5 === 'string' ? { ...identity, rows: md5 } : identity);
  }
  return identities;
}
