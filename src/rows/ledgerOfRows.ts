/**
 * Computes the digest of the ledger (lists/ledgerText.ts) from files that have all rows of a node since the first block
 * with runes. A build computes the same digest from the documents of its archive.
 */
import { readFiles } from '../duckdb/readFilesSql.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import type { Store } from '../duckdb/store.ts';
import { LedgerHash } from '../engine/archive/readLedger.ts';
import type { LedgerPoint } from '../format/listTables.ts';
import type { WorkLimits } from '../limits.ts';
import type { Etching } from '../lists/etchings.ts';

/** Files that have all rows up to the block `point`, and SQL (FROM ...) that reads their runes. */
export interface RowsOfLedger {
  readonly network: string;
  readonly point: Omit<LedgerPoint, 'digest'>;
  readonly paths: readonly string[];
  readonly runes: string;
}

/** Bytes of memory that DuckDB needs to sort the JSON of a rune. */
const RUNE_BYTES = 6000;

type Limits = Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>;

export async function digestOfRows(rows: RowsOfLedger, limits: Limits, store: Store): Promise<string> {
  const hash = new LedgerHash(rows.network, rows.point);
  await addRunes(rows, limits, store, hash);
  await addOutputs(rows, limits, store, hash);
  return hash.digest();
}

/** Sorts rows by their column `key`. Yields the parsed values of their column `json`. */
async function* valuesOf<Value>(rows: string, rowBytes: number, limits: Limits, store: Store): AsyncGenerator<Value> {
  for await (const chunk of sortedRows({ rows, key: 'key', within: 'json', rowBytes }, limits, store))
    for (const [, json] of chunk.getRows()) yield JSON.parse(String(json)) as Value;
}

async function addRunes({ point, paths, runes }: RowsOfLedger, limits: Limits, store: Store, hash: LedgerHash): Promise<void> {
  const counts = `SELECT rune_id, count(*) FILTER (operation = 'mint') AS mints, count(*) FILTER (operation = 'burn') AS burns,
      (sum(amount::BIGNUM) FILTER (operation = 'burn'))::VARCHAR AS burned
    FROM ${readFiles('parquet', paths)} WHERE operation IN ('mint', 'burn') AND block_height <= ${point.height} GROUP BY rune_id`;
  // In the table of runes, the symbol and the transaction id may be missing: UNCOMMON•GOODS has no transaction. Missing
  // cells get the values that builds show.
  const rows = `SELECT lpad(number::VARCHAR, 9, '0') AS key, to_json(r)::VARCHAR AS json
    FROM (SELECT t.* REPLACE (coalesce(symbol, '¤') AS symbol, lpad(coalesce(tx_id, ''), 64, '0') AS tx_id),
        coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, coalesce(burned, '0') AS burned
      FROM (${runes}) t LEFT JOIN (${counts}) c ON c.rune_id = t.id WHERE block_height <= ${point.height}) r`;
  type Rune = Omit<Etching, 'counts'> & { readonly mints: number; readonly burns: number; readonly burned: string };
  for await (const { burned, ...rune } of valuesOf<Rune>(rows, RUNE_BYTES, limits, store))
    hash.addRune(rune, { ...rune, burned: BigInt(burned) });
}

async function addOutputs({ point, paths }: RowsOfLedger, limits: Limits, store: Store, hash: LedgerHash): Promise<void> {
  const upTo = `FROM ${readFiles('parquet', paths)} WHERE block_height <= ${point.height}`;
  const spent = `SELECT split_part(one, ':', 1) AS tx_id, split_part(one, ':', 2)::BIGINT AS "output"
    FROM (SELECT unnest(string_split(spent, ',')) AS one ${upTo} AND spent IS NOT NULL)`;
  const rows = `SELECT tx_id || lpad("output"::VARCHAR, 10, '0') AS key,
      json_array(tx_id || ':' || "output", block_height, tx_index, address, rune_id, amount)::VARCHAR AS json
    FROM (SELECT * ${upTo} AND operation = 'receive' AND "output" IS NOT NULL) ANTI JOIN (${spent}) USING (tx_id, "output")`;
  type Received = readonly [output: string, height: number, txIndex: number, address: string | null, id: string, units: string];
  let [first, units]: [Received | undefined, Map<string, bigint>] = [undefined, new Map()];
  const endOutput = () => {
    if (first === undefined) return;
    const [output, height, txIndex, address] = first;
    const runes = [...units].map(([id, sum]) => [id, String(sum)] as const);
    hash.addOutput({ output, place: [height, '', txIndex, 0], address: address ?? undefined, runes });
  };
  for await (const received of valuesOf<Received>(rows, 2048, limits, store)) {
    if (received[0] !== first?.[0]) {
      endOutput();
      [first, units] = [received, new Map()];
    }
    const [, , , , id, amount] = received;
    units.set(id, (units.get(id) ?? 0n) + BigInt(amount));
  }
  endOutput();
}
