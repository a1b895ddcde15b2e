/**
 * Writes the etchings and the names of an archive (etchings.ts). A level of etchings depends only on the blocks up to its end, so an
 * incremental build produces the same files as a full build. Ordinals are stable, because new etchings are only appended.
 */
import { isWithin } from '../duckdb/blockRanges.ts';
import { joinedBlobs } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { type Store, text } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { documentStart, type LevelForm, makeLevels, padded, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import { PagedLists } from '../engine/archive/pagedLists.ts';
import { asCounts, LOWER_DIGITS, summedCounts } from '../engine/state/countBlocks.ts';
import type { Etchings } from '../engine/state/knownEtchings.ts';
import type { ChangedRunes } from '../engine/state/updateState.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { EtchingTables } from '../format/listTables.ts';
import { yieldNow } from '../yieldNow.ts';
import { digitsOf } from './balanceChanges.sql.ts';

/** Etchings of the last build and of this build; undefined for a build without etchings. */
export interface EtchingChange {
  readonly before: Pick<Etchings, 'hasCounts' | 'tip'> | undefined;
  readonly now: Etchings | undefined;
  readonly changed: ChangedRunes;
}

type EtchingList = `etchings.${'levels' | 'runes'}`;

interface EtchingForm extends LevelForm<EtchingList> {
  readonly etchings: Etchings;
}

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
  const sorted = {
    rows: `SELECT ordinal, ${documentStart(padded('ordinal'))} || ${valueText('facts')} AS text FROM (${rows})`,
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

/** Writes the levels of etchings and of all names that changed since the last build. Returns all levels. */
export async function writeEtchings(plans: readonly LevelPlan[], form: EtchingForm, store: Store): Promise<Omit<EtchingTables, 'total'>> {
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
      WHERE e.${isWithin(plan)}`;
    return writeFacts('etchings.runes', plan, [rows, form.etchings.table], form, store);
  });
  return { levels, runes };
}

/** Returns SQL that selects the etchings that changed in a range of heights: new etchings, and changed supplies. */
function changedIn(plan: LevelPlan, { etchings: { table, hasCounts }, state }: EtchingForm): string {
  // Mints and burns change a supply, sends and receives do not.
  const moved = `SELECT rune_id FROM ${state.blockRunes} WHERE ${isWithin(plan)} AND mint + burn > 0`;
  return `SELECT ordinal, id FROM ${table} WHERE ${isWithin(plan)} OR (${hasCounts} AND block_height <= ${plan.last} AND id IN (${moved}))`;
}

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/** Returns the SQL expression of a sum's digits. Neither part is below 0, but the lower part may have too many digits. */
const sumDigits = (name: 'minted' | 'burned'): string => {
  const [upper, lower, base] = [`coalesce(${name}_upper, 0)`, `coalesce(${name}_lower, 0)`, 10n ** BigInt(LOWER_DIGITS)];
  return digitsOf(`(${upper} + ${lower} // ${base})`, `(${lower} % ${base})`);
};

/** Returns SQL that selects the facts (`Facts` in etchings.ts) of the etchings `changed` after block `tip`. */
function factsOf(changed: string, tip: number, { state, etchings: { hasCounts } }: EtchingForm): string {
  // Subtracts the counts of the blocks above `tip` from those of all blocks, because few blocks are above the ends of the newest levels.
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

/** Returns SQL that selects `name` and `block_height` of runes whose etchings changed. A rune may have two rows. */
function changedRunes({ before, now, changed }: KnownChange): string {
  const [low, high] = [Math.min(before.tip, now.tip), Math.max(before.tip, now.tip)];
  // Lists have only etchings up to the tip. So if the tip moves, those between the old and the new tip are added or removed.
  return `SELECT name, block_height FROM ${changed} WHERE block_height <= CASE WHEN is_new THEN ${now.tip} ELSE ${before.tip} END
    UNION ALL SELECT name, block_height FROM ${now.runes} WHERE block_height > ${low} AND block_height <= ${high}`;
}

/** An EtchingChange if both the last build and this build have etchings. */
type KnownChange = { readonly [name in keyof EtchingChange]: NonNullable<EtchingChange[name]> };
const isKnown = (change: EtchingChange): change is KnownChange => change.before !== undefined && change.now !== undefined;

/** Returns the lowest height whose etchings changed; Infinity without changes, or if this or the last build has no etchings. */
export async function lowestChange(change: EtchingChange, store: Store): Promise<number> {
  if (!isKnown(change)) return Number.POSITIVE_INFINITY;
  const lowest = await store.number(`SELECT coalesce(min(block_height), -1) AS number FROM (${changedRunes(change)})`);
  return lowest < 0 ? Number.POSITIVE_INFINITY : lowest;
}

/** Returns the first `count` letters of changed names that the protocol allows; undefined if this or the last build has no etchings. */
export async function changedFirstLetters(count: number, change: EtchingChange, store: Store): Promise<string[] | undefined> {
  if (!isKnown(change)) return undefined;
  const rows = await store.rows(
    `SELECT DISTINCT left(name, ${count}) AS letters FROM (${changedRunes(change)}) WHERE regexp_full_match(name, '[A-Z]+')`,
    { letters: text },
  );
  return rows.map(({ letters }) => letters);
}

const numberIn = (id: string, part: 1 | 2): string => `try_cast(split_part(${id}, ':', ${part}) AS BIGINT)`;

/** Returns the SQL condition for an expression of a rune id that fits into the table: numbers of up to 3 and 4 bytes. */
export const isRuneId = (id: string): string =>
  `coalesce(regexp_full_match(${id}, '(0|[1-9][0-9]*):(0|[1-9][0-9]*)') AND ${numberIn(id, 1)} < ${2 ** 24} AND ${numberIn(id, 2)} < ${2 ** 32}, false)`;

interface NameForm extends LevelForm<'names'> {
  /** Undefined in a mirror without etchings. */
  readonly etchings: Etchings | undefined;
}

/** Writes the levels of names that changed since the last build. Returns all levels. */
export const writeNames = (plans: readonly LevelPlan[], { etchings, state, limits, old, open }: NameForm, store: Store) =>
  makeLevels(plans, old?.root.lists?.names, async (plan) => {
    const runes =
      etchings === undefined
        ? `SELECT DISTINCT rune_id AS id, number, name, 0 AS ordinal FROM ${state.blockRunes} WHERE ${isWithin(plan)}`
        : `SELECT id, number, name, ordinal FROM (FROM ${etchings.table} WHERE ${isWithin(plan)}) JOIN (SELECT id, number, name FROM ${state.runes}) USING (id)`;
    // Omits names that no valid request contains.
    const rows = `SELECT rune_name, concat('[', ordinal, ',', to_json(id), ']') AS rune
      FROM (SELECT unnest([id, number::VARCHAR, name]) AS rune_name, id, ordinal FROM (${runes}))
      WHERE regexp_full_match(rune_name, '[0-9]+(:[0-9]+)?|[A-Z]+')`;
    const sorted = { rows, bound: etchings && 3 * etchings.total, key: 'rune_name', within: 'rune', select: 'rune_name, rune' };
    const to = open('names', plan);
    const lists = new PagedLists(to, limits.listPage);
    let last = '';
    for await (const chunk of sortedRows(sorted, limits, store)) {
      await yieldNow();
      const [names, entries] = [textsIn(chunk, 0), textsIn(chunk, 1)];
      for (const [row, name] of names.entries()) {
        if (name !== last) lists.list(name);
        last = name;
        lists.text(entries[row] ?? '');
      }
    }
    lists.finish();
    return to.finish(plan);
  });

function textsIn(chunk: Parameters<typeof joinedBlobs>[0], column: number): string[] {
  const { bytes, offsets } = joinedBlobs(chunk, column);
  return Array.from({ length: chunk.rowCount }, (_, row) => bytes.toString('latin1', offsets[row], offsets[row + 1]));
}
