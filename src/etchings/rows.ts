/**
 * Renders etchings from the state. Their ordinals are stable, because etchings are only ever added at the end.
 */
import type { WorkLimits } from '../limits.ts';
import type { Dialect } from '../pages/site.ts';
import type { StateTables } from '../state/state.ts';
import { LOWER_DIGITS } from '../stats/counting.ts';
import type { Store } from '../store/duckdb.ts';
import { sortedRows } from '../store/sortedRows.ts';
import type { EtchingTable } from './facts.ts';
import { type Etching, renderEtching } from './render.ts';

/** How etchings are rendered, and from what. */
export interface EtchingForm {
  readonly etchings: EtchingTable;
  readonly state: Pick<StateTables, 'runes' | 'blockRunes'>;
  readonly dialect: Dialect;
  /** True when the supply has the counts of mints and burns. */
  readonly hasCounts: boolean;
  readonly limits: Pick<WorkLimits, 'sortedAtOnce'>;
}

/** A row of the query below, as JSON. Large integers are texts, and what a rune does not have is null. */
interface Row extends Omit<Etching, 'counts'> {
  readonly mints: number;
  readonly burns: number;
  readonly minted_upper: string;
  readonly minted_lower: string;
  readonly burned_upper: string;
  readonly burned_lower: string;
  /** False when the mints and burns of the rune cannot be summed. */
  readonly is_counted: boolean;
}

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/** Bytes that DuckDB needs to sort the JSON of a row. */
const ROW_BYTES = 6000;

/**
 * Yields the documents (archive/etchings.ts) of etchings as they are after the block `tip`, ascending. `ordinals` is SQL
 * that selects the ordinals of etchings up to `tip`. No other query may run before the last one.
 */
export async function* renderEtchings(
  ordinals: string,
  tip: number,
  { etchings, state, hasCounts, dialect, limits }: EtchingForm,
  store: Store,
): AsyncGenerator<{ readonly key: string; readonly values: readonly [json: string] }> {
  const wanted = `(SELECT ordinal, id FROM ${etchings} WHERE ordinal IN (${ordinals}))`;
  const sums = `(SELECT rune_id, sum(mint)::BIGINT AS mints, sum(burn)::BIGINT AS burns,
      ${SUMS.map((name) => `sum(${name})::HUGEINT AS ${name}`).join(', ')}, min(decimals) AS least, max(decimals) AS most
    FROM ${state.blockRunes} WHERE ${hasCounts} AND block_height <= ${tip} AND rune_id IN (SELECT id FROM ${wanted}) GROUP BY rune_id)`;
  // Amounts with other decimals than the rune has cannot be summed, so such a rune has no counts.
  const isCounted = `${hasCounts} AND coalesce(least = divisibility AND most = divisibility, true)`;
  const columns = [
    'ordinal, id, name, spaced_name, number, divisibility, symbol, turbo, premine, block_hash, block_height, tx_id, tx_index, "timestamp"',
    `coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, ${isCounted} AS is_counted`,
    'terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end',
    ...SUMS.map((name) => `coalesce(${name}, 0)::VARCHAR AS ${name}`),
  ];
  // One JSON text for each row: the store takes ten times as long to convert two dozen cells.
  const rows = `SELECT lpad(ordinal::VARCHAR, 8, '0') AS key, to_json(e)::VARCHAR AS row
    FROM (SELECT ${columns.join(', ')} FROM ${wanted} JOIN ${state.runes} USING (id) LEFT JOIN ${sums} ON rune_id = id) AS e`;
  for await (const chunk of sortedRows({ rows, key: 'key', within: 'key', rowBytes: ROW_BYTES }, limits, store)) {
    for (const [key, json] of chunk.getRows())
      yield { key: String(key), values: [renderEtching(etchingOf(JSON.parse(String(json)) as Row), dialect, tip)] };
  }
}

function etchingOf(row: Row): Etching {
  const joined = (upper: string, lower: string) => BigInt(upper) * 10n ** BigInt(LOWER_DIGITS) + BigInt(lower);
  const { mints, burns, minted_upper, minted_lower, burned_upper, burned_lower, is_counted } = row;
  const [minted, burned] = [joined(minted_upper, minted_lower), joined(burned_upper, burned_lower)];
  return { ...row, counts: is_counted ? { mints, burns, minted, burned } : undefined };
}
