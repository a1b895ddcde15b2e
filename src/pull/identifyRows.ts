/** Computes hash and record count of blocks from ledger rows. */
import { nullable, type Store, text } from '../duckdb/store.ts';
import type { BlockIdentity } from './blockIdentity.ts';

/**
 * Returns the identities of the blocks at these heights. A height without a row gets an empty identity. Hash and count
 * cover only rows whose rune is in `runes`, because builds omit all others. Without `runes`, they cover all rows.
 */
export async function identitiesOf(
  { ledger, runes }: { readonly ledger: string; readonly runes: string | undefined },
  heights: readonly number[],
  store: Store,
): Promise<Map<number, BlockIdentity>> {
  const isRecord = runes === undefined ? 'true' : `rune_id IN (SELECT id FROM ${runes})`;
  const rows = await store.rows(
    `SELECT block_height::VARCHAR AS height, min(block_hash) FILTER (WHERE ${isRecord}) AS hash, (count(*) FILTER (WHERE ${isRecord}))::VARCHAR AS records
     FROM ${ledger} WHERE block_height IN (${heights.join(', ')}) GROUP BY block_height`,
    { height: text, hash: nullable(text), records: text },
  );
  const identities = new Map<number, BlockIdentity>(heights.map((height) => [height, { hash: '', records: 0 }]));
  for (const { height, hash, records } of rows) identities.set(Number(height), { hash: hash ?? '', records: Number(records) });
  return identities;
}
