/**
 * Computes hash, record count and MD5 of blocks from ledger rows. The same SQL runs in PostgreSQL on a table, and in
 * DuckDB on a pulled file.
 */
import { LEDGER_FIELDS } from '../contract/fields.ts';
import { parseHexId } from '../pages/parseIds.ts';
import type { BlockIdentity } from './blockIdentity.ts';

/**
 * SQL expressions that return each cell as text, in quotes unless it is NULL. Integers are first cast to BIGINT,
 * because a table may have them as NUMERIC.
 */
const CELLS = LEDGER_FIELDS.map(({ column, kind }) => {
  const text = `CAST(${kind === 'integer' ? `CAST("${column}" AS BIGINT)` : `"${column}"`} AS VARCHAR)`;
  return `coalesce('"' || replace(${text}, '"', '""') || '"', 'NULL')`;
});

/**
 * Returns SQL that selects a row for each block at these heights, except for blocks without ledger rows.
 *
 * Hash and count cover only rows whose rune is in `runes`, because builds and other servers of the API omit all others.
 * Without `runes`, they cover all rows. `withRows` adds the MD5 of all rows. This MD5 is computed from the sorted MD5s
 * of the rows, because rows of a table have no defined order.
 */
export function identitiesSql(
  { ledger, runes }: { readonly ledger: string; readonly runes: string | undefined },
  heights: readonly number[],
  withRows: boolean,
): string {
  const isRecord = runes === undefined ? 'true' : `rune_id IN (SELECT id FROM ${runes})`;
  const rowDigest = withRows ? `md5(concat_ws(',', ${CELLS.join(', ')}))` : 'NULL';
  const digest = withRows ? `md5(string_agg(row_md5, '' ORDER BY row_md5 COLLATE "C"))` : 'NULL';
  return `SELECT CAST(block_height AS VARCHAR) AS height, min(block_hash) FILTER (WHERE is_record) AS hash,
      CAST(count(*) FILTER (WHERE is_record) AS VARCHAR) AS records, ${digest} AS rows_md5
    FROM (SELECT block_height, block_hash, ${isRecord} AS is_record, ${rowDigest} AS row_md5 FROM ${ledger}
      WHERE block_height IN (${heights.join(', ')})) AS cells
    GROUP BY block_height`;
}

/** Converts the rows of `identitiesSql` to identities by height. A height without a row gets an empty identity. */
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
