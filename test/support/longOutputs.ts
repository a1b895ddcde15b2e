/** Writes pulled files in which one address has very many unspent outputs. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

export const LONG_ADDRESS = 'bc1qlong';

/**
 * Most outputs are created in these 500 blocks. They are below height 4,032, where a level of lists ends
 * (src/format/levels.ts).
 */
const [MADE_FROM, MADE_BLOCKS] = [3500, 500];
/** From this height on, each block spends some outputs and creates as many. */
const SPENT_FROM = 4030;

const spentIn = (height: number, outputs: number, each: number): string =>
  `(SELECT DISTINCT (((${height} - ${SPENT_FROM}) * ${each} + n) * 7919::BIGINT) % ${outputs} AS i FROM range(${each}) AS t(n))`;

const TX = `sha256('tx ' || (i // 50))`;
const row = (
  height: string,
  tx: string,
  columns: { tx_index: string; event_index: string; output: string; address: string; amount: string; operation: string; spent: string },
) =>
  `SELECT '1:1' AS rune_id, sha256('block ' || ${height}) AS block_hash, (${height})::BIGINT AS block_height, (${columns.tx_index})::BIGINT AS tx_index,
    (${columns.event_index})::BIGINT AS event_index, ${tx} AS tx_id, (${columns.output})::BIGINT AS output, ${columns.address} AS address,
    NULL::VARCHAR AS receiver_address, (${columns.amount})::VARCHAR AS amount, '${columns.operation}' AS operation, (1600000000 + 600 * (${height}))::BIGINT AS "timestamp",
    (${columns.spent})::VARCHAR AS spent`;

/**
 * Writes the rows of the blocks from `from` to `tip` into a folder: one file for all blocks below SPENT_FROM, and one
 * file for each later block. The address has `outputs` unspent outputs after each block. Each block from SPENT_FROM on
 * spends up to `each` outputs, far apart, and creates as many. All blocks together must not spend more than `outputs`.
 */
export async function writeLongOutputs(folder: string, outputs: number, each: number, from: number, tip: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  try {
    const copy = (sql: string, name: string) => connection.run(`COPY (${sql}) TO '${join(folder, name)}' (FORMAT parquet)`);
    const transactions = Math.ceil(outputs / 50);
    if (from <= SPENT_FROM) {
      await copy(
        `SELECT '1:1' AS id, 0::BIGINT AS number, 'LONG' AS name, 'LONG' AS spaced_name, sha256('block 1') AS block_hash, 1::BIGINT AS block_height,
          1::BIGINT AS tx_index, sha256('etching') AS tx_id, 0::BIGINT AS divisibility, '0' AS premine, 'L' AS symbol,
          '50' AS terms_amount, '1000000000' AS terms_cap,
          ${['height_start', 'height_end', 'offset_start', 'offset_end'].map((one) => `NULL::VARCHAR AS terms_${one}`).join(', ')},
          false AS turbo, false AS cenotaph, 1600000600::BIGINT AS "timestamp"`,
        'runes.parquet',
      );
      const etching = row('1', `sha256('etching')`, {
        tx_index: '1',
        event_index: '0',
        output: 'NULL',
        address: 'NULL::VARCHAR',
        amount: 'NULL',
        operation: 'etching',
        spent: 'NULL',
      });
      const index = '1 + i // 50 - min(i // 50) OVER (PARTITION BY height)';
      const made = row('height', TX, {
        tx_index: index,
        event_index: '1 + i % 50',
        output: 'i % 50',
        address: `'${LONG_ADDRESS}'`,
        amount: '1',
        operation: 'receive',
        spent: 'NULL',
      });
      // Each transaction mints the amount that its 50 outputs receive.
      const minted = row('height', TX, {
        tx_index: index,
        event_index: '0',
        output: 'NULL',
        address: 'NULL::VARCHAR',
        amount: '50',
        operation: 'mint',
        spent: 'NULL',
      });
      const placed = `(SELECT i, ${MADE_FROM} + (i // 50) * ${MADE_BLOCKS} // ${transactions} AS height FROM range(${outputs}) AS t(i))`;
      await copy(`${etching} UNION ALL ${made} FROM ${placed} UNION ALL ${minted} FROM ${placed} WHERE i % 50 = 0`, 'ledger-old.parquet');
    }
    for (let at = Math.max(from, SPENT_FROM); at <= tip; at += 1) {
      const tx = `sha256('spend ${at}')`;
      const spent = `(SELECT string_agg(${TX} || ':' || (i % 50) || ':${LONG_ADDRESS}', ',' ORDER BY i) FROM ${spentIn(at, outputs, each)})`;
      const count = `(SELECT count(*) FROM ${spentIn(at, outputs, each)})`;
      const first = row(String(at), tx, {
        tx_index: '1',
        event_index: '0',
        output: 'NULL',
        address: `'${LONG_ADDRESS}'`,
        amount: count,
        operation: 'send',
        spent,
      });
      const made = row(String(at), tx, {
        tx_index: '1',
        event_index: '1 + n',
        output: 'n',
        address: `'${LONG_ADDRESS}'`,
        amount: '1',
        operation: 'receive',
        spent: 'NULL',
      });
      await copy(`${first} UNION ALL ${made} FROM (SELECT unnest(range(${count})) AS n)`, `ledger-${at}.parquet`);
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
