/** Computes the digests of blocks from files of ledger rows, as a build does. */
import { LEDGER_FIELDS } from '../contract/fields.ts';
import type { BlockDigest } from '../contract/schemas.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import { ledgerSelect, SHIFT_DECIMALS } from '../input/joinRunes.ts';
import type { WorkLimits } from '../limits.ts';

const RUNES_OF_ROWS = columns('id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, divisibility BIGINT');
export type RunesOfRows = Table<typeof RUNES_OF_ROWS>;

/** Creates a table of the runes that occur in files of rows, from the files of all runes. Later queries join this small table. */
export const runesOfRows = (paths: readonly string[], runes: readonly string[], store: Store): Promise<RunesOfRows> =>
  store.table(
    'runes_of_rows',
    RUNES_OF_ROWS,
    `SELECT DISTINCT ON (id) ${Object.keys(RUNES_OF_ROWS).join(', ')} FROM ${readFiles('parquet', runes)}
     WHERE id IN (SELECT rune_id FROM ${readFiles('parquet', paths)})`,
  );

type CountedBlock = Omit<BlockDigest, 'digest'>;

/**
 * Returns the blocks that have records in files of ledger rows. Omits rows of unknown runes. A block for which `isExpected` is false gets
 * no digest: to compute it takes the complete block in memory, and files of strangers may have blocks of any size.
 */
export async function blocksOfRows(
  paths: readonly string[],
  runes: RunesOfRows,
  isExpected: (block: CountedBlock) => boolean,
  limits: Pick<WorkLimits, 'batchRecords' | 'servedAtOnce'>,
  store: Store,
): Promise<(CountedBlock | BlockDigest)[]> {
  await store.run(SHIFT_DECIMALS);
  const relation = `(SELECT 0 AS source, * FROM ${readFiles('parquet', paths)})`;
  const records = `(${ledgerSelect({ relation, columns: LEDGER_FIELDS.map((field) => ({ field, shape: 'canonical' })) }, runes)})`;
  const counted = await store.rows(
    `SELECT block_height AS height, min(block_hash) AS hash, count(*) AS records FROM ${records} GROUP BY height ORDER BY height`,
    { height: int, hash: text, records: int },
  );
  const blocks: (CountedBlock | BlockDigest)[] = counted.filter((block) => !isExpected(block));
  const others = blocks.map(({ height }) => height);
  const rows = others.length === 0 ? records : `(FROM ${records} WHERE block_height NOT IN (${others.join(', ')}))`;
  for await (const batch of renderBatches(store, { dialect: 'contract', layout: 'archive' }, counted.filter(isExpected), limits, rows, []))
    for (const { height, hash, records, digest } of batch.blocks) blocks.push({ height, hash, records, digest });
  return blocks;
}
