/** Writes pulled files of any size, with runes, addresses and outputs in numbers like mainnet's. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { withDuckDB } from './withDuckDB.ts';

export interface ManyOutputs {
  /** Heights of the blocks, from `first` to `last`. */
  readonly first: number;
  readonly last: number;
  /** Number of transactions of a block. A transaction has two records and makes one output. */
  readonly transactions: number;
  readonly runes: number;
  readonly addresses: number;
}

/** Distance of the transaction that spends an output from the one that makes it. The rest of a division by 3 is 2. */
const LATER = 1001;
/** Number of blocks of a file. */
const FILE_BLOCKS = 1000;

/**
 * Writes the rows of the blocks from height `from` into a folder. Every third transaction moves the output of an earlier one to another
 * address, all others mint. With `from`, a call adds blocks to those of an earlier call.
 */
export async function writeManyOutputs(folder: string, form: ManyOutputs, from = form.first): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const { first, last, transactions, runes, addresses } = form;
  const id = (g: string) => `sha256('tx ' || (${g}))`;
  const address = (g: string) => `'bc1q' || substr(sha256('address ' || ((${g}) * 7919::BIGINT % ${addresses})), 1, 38)`;
  await withDuckDB(folder, async (connection) => {
    const copy = (sql: string, name: string) =>
      connection.run(`COPY (${sql}) TO '${join(folder, name)}' (FORMAT parquet, COMPRESSION zstd)`);
    if (from === first) {
      const terms = ['height_start', 'height_end', 'offset_start', 'offset_end'].map((one) => `NULL::VARCHAR AS terms_${one}`).join(', ');
      await copy(
        `SELECT '1:' || r AS id, r - 1 AS number, 'RUNE' || translate(r::VARCHAR, '0123456789', 'ABCDEFGHIJ') AS name, name AS spaced_name,
           sha256('block 1') AS block_hash, 1::BIGINT AS block_height, r AS tx_index, sha256('etching ' || r) AS tx_id, 0::BIGINT AS divisibility,
           '0' AS premine, 'M' AS symbol, '10' AS terms_amount, '100000000' AS terms_cap, ${terms}, false AS turbo, false AS cenotaph,
           1600000600::BIGINT AS "timestamp" FROM range(1, ${runes + 1}) AS t(r)`,
        'runes.parquet',
      );
    }
    for (let low = from; low <= last; low += FILE_BLOCKS) {
      const high = Math.min(last, low + FILE_BLOCKS - 1);
      const all = `SELECT g, ${first} + g // ${transactions} AS height, 1 + g % ${transactions} AS tx_index, '1:' || (1 + g // 6 * 31 % ${runes}) AS rune_id,
        g % 3 = 2 AND g >= ${LATER} AS moves, g - ${LATER} AS old FROM range(${(low - first) * transactions}, ${(high + 1 - first) * transactions}) AS t(g)`;
      // The rune of a moved output is that of the transaction that made it.
      const rune = `CASE WHEN moves THEN '1:' || (1 + old // 6 * 31 % ${runes}) ELSE rune_id END`;
      const row = (columns: string) =>
        `SELECT ${rune} AS rune_id, sha256('block ' || height) AS block_hash, height AS block_height, tx_index, ${id('g')} AS tx_id,
          NULL::VARCHAR AS receiver_address, 1600000000 + 600 * height AS "timestamp", ${columns} FROM (${all})`;
      const took = row(
        `0::BIGINT AS event_index, NULL::BIGINT AS "output", CASE WHEN moves THEN ${address('old')} END AS address, '10' AS amount,
         CASE WHEN moves THEN 'send' ELSE 'mint' END AS operation, CASE WHEN moves THEN ${id('old')} || ':0:' || ${address('old')} END AS spent`,
      );
      const made = row(
        `1::BIGINT AS event_index, 0::BIGINT AS "output", ${address('g')} AS address, '10' AS amount, 'receive' AS operation, NULL::VARCHAR AS spent`,
      );
      const etched = `SELECT '1:' || r AS rune_id, sha256('block 1') AS block_hash, 1::BIGINT AS block_height, r AS tx_index, sha256('etching ' || r) AS tx_id,
        NULL::VARCHAR AS receiver_address, 1600000600::BIGINT AS "timestamp", 0::BIGINT AS event_index, NULL::BIGINT AS "output", NULL::VARCHAR AS address,
        NULL::VARCHAR AS amount, 'etching' AS operation, NULL::VARCHAR AS spent FROM range(1, ${runes + 1}) AS t(r)`;
      const rows = `${low === first ? `${etched} UNION ALL BY NAME ` : ''}${took} UNION ALL BY NAME ${made}`;
      await copy(`FROM (${rows}) ORDER BY block_height, tx_index, event_index`, `ledger-${low}.parquet`);
    }
  });
}
