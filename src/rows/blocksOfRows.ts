/** Makes the records of ledger rows in files, as a build does, and checks that rows add up. */
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import { SHIFT_DECIMALS } from '../input/joinRunes.ts';
import { LIMITS } from '../limits.ts';
import type { Site } from '../pages/mirrorOptions.ts';

/** A block as its rows say, with the digest of its records (contract/blockDigest.ts). Blocks without records are left out. */
export interface RowsBlock {
  readonly height: number;
  readonly hash: string;
  readonly records: number;
  readonly digest: string;
}

/** Options that the digest of a block does not depend on. */
const SITE: Site = { layout: 'archive', dialect: 'contract', pageSizes: [60], operationPages: false, compress: [], parquet: false };

/** Returns SQL of the canonical records (input/canonicalRecordSql.ts) of rows. Rows of unknown runes are left out. */
const recordsOf = (path: string, runes: string): string => `SELECT rune_id, r.number AS rune_number, r.name AS rune_name,
    r.spaced_name AS rune_spaced_name, address, receiver_address, shift_decimals(amount, r.divisibility) AS amount, operation,
    l.block_hash, l.block_height, l.tx_id, l.tx_index, l."output" AS vout, CASE WHEN l."output" IS NOT NULL THEN l.tx_id END AS "output",
    l."timestamp", event_index AS ord
  FROM ${readFiles('parquet', [path])} l JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${readFiles('parquet', [runes])}) r ON r.id = rune_id`;

/** Returns the blocks of a file, heights ascending. `runes` is the path of the runes of its rows. */
export async function blocksOfRows(path: string, runes: string, store: Store): Promise<RowsBlock[]> {
  await store.run(SHIFT_DECIMALS);
  const records = recordsOf(path, runes);
  const counted = await store.rows(
    `SELECT block_height AS height, min(block_hash) AS hash, count(*) AS records FROM (${records}) GROUP BY ALL ORDER BY height`,
    { height: int, hash: text, records: int },
  );
  const blocks: RowsBlock[] = [];
  for await (const batch of renderBatches(store, SITE, counted, LIMITS, `(${records})`))
    for (const { height, hash, records: count, digest } of batch.blocks) blocks.push({ height, hash, records: count, digest });
  return blocks.sort((a, b) => a.height - b.height);
}

/**
 * Describes the first transaction of a node's rows that makes or loses units of a rune. Undefined if there is none.
 * Outputs receive all units that are sent, minted or premined, except units of burns without an address.
 */
export async function firstUnbalanced(path: string, runes: string, store: Store): Promise<string | undefined> {
  const units = `coalesce(amount, '0')::BIGNUM`;
  const [row] = await store.rows(
    `SELECT block_height AS height, tx_index AS "index", rune_id AS rune FROM (
       SELECT block_height, tx_index, rune_id, bool_or(operation = 'etching' AND premine IS NULL) AS is_unknown,
         sum(CASE WHEN operation IN ('send', 'mint') THEN ${units} WHEN operation = 'etching' THEN premine::BIGNUM ELSE '0'::BIGNUM END) AS made,
         sum(CASE WHEN operation = 'receive' THEN ${units} ELSE '0'::BIGNUM END) AS received,
         sum(CASE WHEN operation = 'burn' AND address IS NULL THEN ${units} ELSE '0'::BIGNUM END) AS burned
       FROM ${readFiles('parquet', [path])} LEFT JOIN (SELECT id, premine FROM ${readFiles('parquet', [runes])}) ON id = rune_id
       GROUP BY ALL)
     WHERE NOT is_unknown AND (received > made OR made - received > burned) ORDER BY height, "index" LIMIT 1`,
    { height: int, index: int, rune: text },
  );
  return row && `block ${row.height} does not conserve rune ${row.rune} in its transaction ${row.index}`;
}
