/**
 * Makes long lists of balances: one rune and one address with many entries, and recently etched runes. Levels of lists
 * (src/format/levels.ts) end below heights 4,032, 4,464 and 4,480, and at the tip.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Store } from '../../src/duckdb/store.ts';
import { rowsOf } from './build.ts';

export const TIP = 4500;
/** Number of entries of a list that change in each level, if the list is long enough. A page has 600 entries. */
const CHANGED = 550;
/** Number of changes of the rune `LATE` after its etching: more than fit on a page of 600 entries. */
const MANY = 700;

export const WIDE = 'bc1qwide';
/** Paths of lists, by the name of the list. */
export const LISTS = {
  'balances of an address': `addresses/${WIDE}/balances`,
  'holders of a rune': 'etchings/1000:1/holders',
  'holders of a rune etched in the newest level': 'etchings/4490:1/holders',
  'holders of a rune etched in the level below': 'etchings/4465:1/holders',
} as const;
export type ListName = keyof typeof LISTS;

/** Writes the input of a build, and computes the expected answers. */
export class LongBalances {
  readonly #folder: string;
  readonly #store: Store;
  /** Number of runes of the address. */
  readonly #runes: number;

  private constructor(folder: string, store: Store, runes: number) {
    this.#folder = folder;
    this.#store = store;
    this.#runes = runes;
  }

  /**
   * Writes the input. `entries` is the number of holders of a rune and of runes of an address, but the address has at
   * most 270,000 runes.
   */
  static async in(folder: string, entries: number): Promise<LongBalances> {
    const store = await Store.open({ memoryLimit: '6GB', threads: 2, scratch: join(folder, 'scratch') });
    const made = new LongBalances(join(folder, 'in'), store, Math.min(entries, 270_000));
    mkdirSync(join(folder, 'in'), { recursive: true });
    const runes = made.#runes;
    const changed = (count: number) => Math.min(CHANGED, count);
    const units = (i: string, below: number) => `3 + (${i} * 7919) % ${below}`;
    const holders = (
      rune: string,
      first: number,
      heights: number,
      from: string,
    ) => `SELECT '${rune}' AS rune_id, ${first} + i % ${heights} AS block_height,
      '${from}' || i AS address, ${units('i', 1_000_003)} AS amount, 'receive' AS operation FROM range(${entries}) r(i)`;
    // Every holder receives at least 3 units, so that no sent amount exceeds the received amount.
    const moved = (
      height: number,
      step: number,
    ) => `SELECT '1000:1', ${height}, 'bc1qh' || (k * ${Math.floor(entries / changed(entries))} + ${step}),
      CASE WHEN k % 3 = 0 THEN 1 ELSE 900_000 + k END, CASE WHEN k % 3 = 0 THEN 'send' ELSE 'receive' END FROM range(${changed(entries) - 2}) r(k)`;
    const received = (height: number, step: number) => `SELECT id, ${height}, '${WIDE}', 90_000 + number, 'receive'
      FROM runes WHERE number BETWEEN 1 AND ${changed(runes) * Math.floor(runes / changed(runes))} AND (number + ${step}) % ${Math.floor(runes / changed(runes))} = 0`;
    await store.run(`
      CREATE TABLE runes AS SELECT block_height || ':' || tx_index AS id, number, 'RUNE' || replace(replace(number::VARCHAR, '0', 'A'), '1', 'B') AS name, block_height, tx_index
      FROM (SELECT 0 AS number, 1000 AS block_height, 1 AS tx_index
        UNION ALL SELECT i + 1, 1001 + i // 2000, i % 2000 + 1 FROM range(${runes}) r(i)
        UNION ALL VALUES (${runes + 1}, 4465, 1), (${runes + 2}, 4490, 1));
      CREATE TABLE events AS
        SELECT id AS rune_id, block_height, NULL AS address, NULL::BIGINT AS amount, 'etching' AS operation FROM runes
        UNION ALL SELECT id, block_height, '${WIDE}', ${units('number', 100_003)}, 'receive' FROM runes WHERE number BETWEEN 1 AND ${runes}
        UNION ALL ${holders('1000:1', 1200, 100, 'bc1qh')}
        UNION ALL ${moved(4040, 0)} UNION ALL ${moved(4470, 1)} UNION ALL ${moved(4485, 0)}
        UNION ALL ${received(4041, 0)} UNION ALL ${received(4471, 1)} UNION ALL ${received(4486, 0)}
        UNION ALL ${holders('4465:1', 4466, 8, 'bc1ql')}
        UNION ALL SELECT '4465:1', 4487, 'bc1ql' || k, 5, 'receive' FROM range(${MANY}) r(k)
        UNION ALL ${holders('4490:1', 4490, 8, 'bc1qt')}
        UNION ALL SELECT '1000:1', ${TIP}, 'bc1qh7', 1, 'receive'`);
    await store.run(`COPY (SELECT id, number, name, name AS spaced_name, sha256('b' || block_height) AS block_hash, block_height, tx_index,
        sha256('t' || id) AS tx_id, 0 AS divisibility, '0' AS premine, '$' AS symbol, ${['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((one) => `NULL::VARCHAR AS terms_${one}`).join(', ')},
        false AS turbo, false AS cenotaph, block_height AS "timestamp" FROM runes) TO '${made.#folder}/runes.parquet'`);
    await made.#writeLedger('ledger', `block_height <= ${TIP}`);
    return made;
  }

  /** Adds a block that changes a few entries of each list. */
  async addBlock(): Promise<void> {
    await this.#store.run(`INSERT INTO events SELECT rune_id, ${TIP + 1}, address, 3, 'receive' FROM events
      WHERE address IN ('bc1qh3', 'bc1ql3', 'bc1qt3') AND operation = 'receive' AND amount > 100
      UNION ALL SELECT id, ${TIP + 1}, '${WIDE}', 7, 'receive' FROM runes WHERE number = 9`);
    await this.#writeLedger('next', `block_height > ${TIP}`);
  }

  #writeLedger(name: string, where: string): Promise<void> {
    const number = 'row_number() OVER (PARTITION BY block_height ORDER BY operation DESC, rune_id, address)';
    return this.#store.run(`COPY (SELECT rune_id, sha256('b' || block_height) AS block_hash, block_height, 10 + number AS tx_index, 0 AS event_index,
        sha256(block_height || ' ' || number) AS tx_id, NULL::VARCHAR AS "output", address, NULL::VARCHAR AS receiver_address, amount::VARCHAR AS amount,
        operation, block_height AS "timestamp"
      FROM (SELECT *, ${number} AS number FROM events WHERE ${where})) TO '${this.#folder}/${name}.parquet'`);
  }

  get input(): string {
    return this.#folder;
  }

  /** Returns a window of a list, computed in SQL from the events up to a height. */
  async window(
    name: ListName,
    offset: number,
    limit: number,
    height: number,
  ): Promise<{ total: number; results: [key: string, balance: string][] }> {
    const isAddress = name === 'balances of an address';
    const [key, where] = isAddress ? ['rune_id', `address = '${WIDE}'`] : ['address', `rune_id = '${LISTS[name].split('/')[1]}'`];
    const order = isAddress ? `split_part(key, ':', 1)::INT, split_part(key, ':', 2)::INT` : 'key';
    const list = `SELECT ${key} AS key, sum(CASE operation WHEN 'receive' THEN amount ELSE -amount END)::BIGINT AS units FROM events
      WHERE ${where} AND ${key} IS NOT NULL AND operation <> 'etching' AND block_height <= ${height} GROUP BY key HAVING units > 0`;
    const [{ total } = { total: 0 }] = await rowsOf(`SELECT count(*)::INT AS total FROM (${list})`, this.#store);
    const rows = await rowsOf(
      `SELECT key, units::VARCHAR AS balance FROM (${list}) ORDER BY units DESC, ${order} LIMIT ${limit} OFFSET ${offset}`,
      this.#store,
    );
    return { total: Number(total), results: rows.map((row) => [String(row['key']), String(row['balance'])]) };
  }

  close(): void {
    this.#store.close();
  }
}
