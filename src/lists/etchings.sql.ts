/**
 * Writes the etchings of an archive (etchings.ts): finds the etchings that a build changed. A level (format/levels.ts) has the etchings
 * that changed in its blocks, as they are after its last block. The level depends only on the blocks up to its end, so an incremental build
 * produces the same files as a full build. Ordinals (the positions of etchings) are stable, because new etchings are only appended.
 */
import { sortedRows } from '../duckdb/sortedRows.ts';
import { type Store, text } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { documentStart, type LevelForm, makeLevels, padded, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import { asCounts, LOWER_DIGITS, summedCounts } from '../engine/state/countBlocks.ts';
import type { Etchings } from '../engine/state/knownEtchings.ts';
import type { ChangedRunes } from '../engine/state/updateState.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { EtchingTables } from '../format/listTables.ts';
import { digitsOf } from './balanceChanges.sql.ts';

/** Etchings of the last build (`before`) and of this build (`now`); undefined for a build without etchings. */
export interface EtchingChange {
  readonly before: Pick<Etchings, 'hasCounts' | 'tip'> | undefined;
  readonly now: Etchings | undefined;
  readonly changed: ChangedRunes;
}

interface EtchingForm extends LevelForm<EtchingList> {
  readonly etchings: Etchings;
}

type EtchingList = `etchings.${'levels' | 'runes'}`;

/** Bytes of memory that DuckDB needs to sort the facts of an etching. */
const ROW_BYTES = 2048;

/** Writes a level of documents from `rows` with the columns `ordinal` and `facts`, at most one for each row of `from`. */
async function writeFacts(
  list: EtchingList,
  plan: LevelPlan,
  [rows, from]: readonly [rows: string, from: TableWith<'ordinal'>],
  { limits, open, etchings }: EtchingForm,
  store: Store,
): Promise<DocumentLevel | undefined> {
  const text = `${documentStart(padded('ordinal'))} || ${valueText('facts')} AS text`;
  const sorted = {
    rows: `SELECT ordinal, ${text} FROM (${rows})`,
    most: `(SELECT count(*) FROM ${from})`,
    bound: etchings.total,
    rowBytes: ROW_BYTES,
    key: 'ordinal',
    within: 'ordinal',
    select: TEXTS,
  };
  const to = open(list, plan);
  await writeTexts(to, sortedRows(sorted, limits, store));
  return to.finish(plan);
}

/** Writes the levels of etchings and of names (allRuneNames.ts) that changed since the last build. Returns all levels. */
export async function writeEtchings(
  plans: readonly LevelPlan[],
  form: EtchingForm,
  store: Store,
): Promise<Pick<EtchingTables, 'levels' | 'runes'>> {
  const old = form.old?.root.lists?.etchings;
  const levels = await makeLevels(plans, old?.levels, async (plan) => {
    const changed = await store.table('changed_etchings', columns('ordinal BIGINT, id VARCHAR'), changedIn(plan, form));
    const rows = factsOf(`${changed}`, plan.last, form);
    const level = await writeFacts('etchings.levels', plan, [rows, changed], form, store);
    await store.run(`DROP TABLE ${changed}`);
    return level;
  });
  const runes = await makeLevels(plans, old?.runes, (plan) => {
    const names = 'id, number, spaced_name, divisibility, symbol';
    const rows = `SELECT ordinal, CASE WHEN name = replace(spaced_name, '•', '') THEN json_array(${names}) ELSE json_array(${names}, name) END AS facts
      FROM ${form.etchings.table} AS e JOIN (SELECT id, number, name, spaced_name, divisibility, symbol FROM ${form.state.runes}) USING (id)
      WHERE e.block_height BETWEEN ${plan.first} AND ${plan.last}`;
    return writeFacts('etchings.runes', plan, [rows, form.etchings.table], form, store);
  });
  return { levels, runes };
}

/** Returns SQL that selects the etchings that changed in a range of heights: new etchings, and changed supplies. */
function changedIn({ first, last }: LevelPlan, { etchings: { table, hasCounts }, state }: EtchingForm): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const moved = `SELECT rune_id FROM ${state.blockRunes} WHERE ${isIn} AND ${HAS_COUNTS}`;
  return `SELECT ordinal, id FROM ${table} WHERE ${isIn} OR (${hasCounts} AND block_height <= ${last} AND id IN (${moved}))`;
}

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/** Returns the SQL expression of a sum's digits. Neither part is below 0, but the lower part may have too many digits. */
const sumDigits = (name: 'minted' | 'burned'): string => {
  const [upper, lower, base] = [`coalesce(${name}_upper, 0)`, `coalesce(${name}_lower, 0)`, 10n ** BigInt(LOWER_DIGITS)];
  return digitsOf(`(${upper} + ${lower} // ${base})`, `(${lower} % ${base})`);
};

/** Returns SQL that selects the facts (`parseFacts` in lists/etchings.ts) of the etchings `changed` after block `tip`. */
function factsOf(changed: string, tip: number, { state, etchings: { hasCounts } }: EtchingForm): string {
  // Subtracts the counts of the blocks above `tip` from the counts of all blocks. This is fast for the newest levels, because few blocks
  // are above their ends.
  const isIn = `${hasCounts} AND rune_id IN (SELECT id FROM ${changed})`;
  const counts = [
    `SELECT * FROM ${state.runeCounts} WHERE ${isIn}`,
    asCounts(`${state.blockRunes} WHERE block_height > ${tip} AND ${isIn}`, -1),
  ];
  const byDecimals = summedCounts(counts.join(' UNION ALL BY NAME '), ['rune_id', 'decimals']);
  const sums = `(SELECT rune_id, sum(mint)::BIGINT AS mints, sum(burn)::BIGINT AS burns,
      ${SUMS.map((name) => `sum(${name})::HUGEINT AS ${name}`).join(', ')}, min(decimals) AS least, max(decimals) AS most
    FROM (${byDecimals}) GROUP BY rune_id)`;
  // Amounts of a rune can be summed only if they have as many decimals as the rune. Otherwise the rune has no counts.
  const isCounted = `${hasCounts} AND coalesce(least = divisibility AND most = divisibility, true)`;
  const terms = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((term) => `terms_${term}`);
  return `SELECT ordinal, json_array(id, number, name, spaced_name, divisibility, symbol, turbo, json_array(${terms.join(', ')}), premine,
      block_hash, block_height, tx_id, tx_index, "timestamp",
      CASE WHEN ${isCounted} THEN json_array(coalesce(mints, 0), coalesce(burns, 0), ${sumDigits('minted')}, ${sumDigits('burned')}) END) AS facts
    FROM ${state.runes} LEFT JOIN ${sums} ON rune_id = id WHERE ordinal IN (SELECT ordinal FROM ${changed})`;
}

/** SQL condition for counts that change an etching: mints and burns change its supply, sends and receives do not. */
const HAS_COUNTS = 'mint + burn > 0';

/** Returns SQL that selects `name` and `block_height` of runes whose etchings changed. A rune may have two rows. */
function changedRunes({ before, now, changed }: KnownChange): string {
  const [low, high] = [Math.min(before.tip, now.tip), Math.max(before.tip, now.tip)];
  // Lists have only etchings up to the tip. So if the tip moves, the etchings between the old and the new tip are added to the lists, or
  // removed from them.
  return `SELECT name, block_height FROM ${changed} WHERE block_height <= CASE WHEN is_new THEN ${now.tip} ELSE ${before.tip} END
    UNION ALL SELECT name, block_height FROM ${now.runes} WHERE block_height > ${low} AND block_height <= ${high}`;
}

/** An EtchingChange if both the last build and this build have etchings. */
type KnownChange = { readonly [name in keyof EtchingChange]: NonNullable<EtchingChange[name]> };
const isKnown = (change: EtchingChange): change is KnownChange => change.before !== undefined && change.now !== undefined;

/** Returns the lowest height whose etchings changed; Infinity without changes, or if this build or the last build has no etchings. */
export async function lowestChange(change: EtchingChange, store: Store): Promise<number> {
  if (!isKnown(change)) return Number.POSITIVE_INFINITY;
  const lowest = await store.number(`SELECT coalesce(min(block_height), -1) AS number FROM (${changedRunes(change)})`);
  return lowest < 0 ? Number.POSITIVE_INFINITY : lowest;
}

/**
 * Returns the first `count` letters of the name of each changed etching. Ignores names that the protocol forbids. Undefined if this build
 * or the last build has no etchings.
 */
export async function changedFirstLetters(count: number, change: EtchingChange, store: Store): Promise<string[] | undefined> {
  if (!isKnown(change)) return undefined;
  const rows = await store.rows(
    `SELECT DISTINCT left(name, ${count}) AS letters FROM (${changedRunes(change)}) WHERE regexp_full_match(name, '[A-Z]+')`,
    { letters: text },
  );
  return rows.map(({ letters }) => letters);
}
