/**
 * Writes the etchings of an archive (etchings.ts): finds the etchings that a build changed, and renders them. A level
 * (format/levels.ts) has the etchings that changed in its blocks, as they are after its last block. The level depends
 * only on the blocks up to its end, so an incremental build produces the same files as a full build. Ordinals (the
 * positions of etchings) are stable, because new etchings are only appended.
 */
import { sortedRows } from '../duckdb/sortedRows.ts';
import { type Store, text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import type { StoredDocument } from '../engine/archive/documentWriter.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { documentsIn, linesIn, makeLevels, type OpenLevel, writeDocuments } from '../engine/archive/makeLevels.ts';
import { asCounts, LOWER_DIGITS, summedCounts } from '../engine/state/countBlocks.ts';
import type { Etchings, EtchingTable } from '../engine/state/knownEtchings.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { ChangedRunes } from '../engine/state/updateState.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { WorkLimits } from '../limits.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { type RuneName, runeNameText } from './allRuneNames.ts';
import { type Etching, renderEtching } from './etchings.ts';

/** Etchings of the last build (`before`) and of this build (`now`); undefined for a build without etchings. */
export interface EtchingChange {
  readonly before: Pick<Etchings, 'hasCounts' | 'tip'> | undefined;
  readonly now: Etchings | undefined;
  readonly changed: ChangedRunes;
}

/** Writes the levels of etchings that changed since the last build (`old`). Returns all levels. */
export const writeEtchings = (
  plans: readonly LevelPlan[],
  old: readonly DocumentLevel[],
  form: EtchingForm,
  open: OpenLevel<'etchings.levels'>,
  store: Store,
): Promise<DocumentLevel[]> =>
  makeLevels(plans, old, async (plan) => {
    const changed = await store.table('changed_etchings', CHANGED, changedIn(plan, form));
    const level = await writeDocuments(open('etchings.levels', plan), plan, renderEtchings(changed, plan.last, form, store));
    await store.run(`DROP TABLE ${changed}`);
    return level;
  });

const LINE = `key || chr(9) || row || chr(10)`;

const CHANGED = columns('ordinal BIGINT, id VARCHAR');

/** Writes the levels of names (allRuneNames.ts) that changed since the last build. Returns all levels. */
export const writeRuneNames = (
  plans: readonly LevelPlan[],
  old: readonly DocumentLevel[],
  { etchings, state: { runes }, limits }: EtchingForm,
  open: OpenLevel<'etchings.runes'>,
  store: Store,
): Promise<DocumentLevel[]> =>
  makeLevels(plans, old, (plan) => {
    const rows = `SELECT lpad(ordinal::VARCHAR, 8, '0') AS key, to_json(r)::VARCHAR AS row FROM ${etchings} AS e
      JOIN (SELECT id, number, name, spaced_name, divisibility, symbol FROM ${runes}) AS r USING (id)
      WHERE e.block_height BETWEEN ${plan.first} AND ${plan.last}`;
    const form = { rows, most: `(SELECT count(*) FROM ${etchings})`, key: 'key', within: 'key', select: LINE };
    const sorted = linesIn(sortedRows(form, limits, store));
    const names = async function* () {
      for await (const { key, values } of documentsIn(sorted))
        yield { key, values: values.map((json) => runeNameText(JSON.parse(json) as RuneName)) };
    };
    return writeDocuments(open('etchings.runes', plan), plan, names());
  });

/** Returns SQL that selects the etchings that changed in a range of heights: new etchings, and changed supplies. */
function changedIn({ first, last }: LevelPlan, { etchings, state, hasCounts }: EtchingForm): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const moved = `SELECT rune_id FROM ${state.blockRunes} WHERE ${isIn} AND ${HAS_COUNTS} UNION SELECT id FROM ${state.runes} WHERE ${windowMoves(first, last)}`;
  return `SELECT ordinal, id FROM ${etchings} WHERE ${isIn} OR (${hasCounts} AND block_height <= ${last} AND id IN (${moved}))`;
}

export interface EtchingForm {
  readonly etchings: EtchingTable;
  readonly state: Pick<StateTables, 'runes' | 'blockRunes' | 'runeCounts'>;
  readonly dialect: Dialect;
  /** True if the object `supply` of an etching has the numbers and amounts of mints and burns. */
  readonly hasCounts: boolean;
  readonly limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>;
}

/** A row that `renderEtchings` selects, as JSON. Large integers are texts, and missing values are null. */
interface Row extends Omit<Etching, 'counts'> {
  readonly mints: number;
  readonly burns: number;
  readonly minted_upper: string;
  readonly minted_lower: string;
  readonly burned_upper: string;
  readonly burned_lower: string;
  /** False if the amounts of the rune's records have other numbers of decimals, so that they cannot be summed. */
  readonly is_counted: boolean;
}

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/** Bytes of memory that DuckDB needs to sort the JSON of a row. */
const ROW_BYTES = 6000;

/**
 * Yields the documents (lists/etchings.ts) of the etchings `changed`, as they are after block `tip`, by ascending key.
 * No other query may run before the last document is read.
 */
async function* renderEtchings(
  changed: Table<typeof CHANGED>,
  tip: number,
  { state, hasCounts, dialect, limits }: EtchingForm,
  store: Store,
): AsyncGenerator<StoredDocument> {
  // Subtracts the counts of the blocks above `tip` from the counts of all blocks. This is fast for the newest levels,
  // because few blocks are above their ends.
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
  const columns = [
    'ordinal, id, name, spaced_name, number, divisibility, symbol, turbo, premine, block_hash, block_height, tx_id, tx_index, "timestamp"',
    `coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, ${isCounted} AS is_counted`,
    'terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end',
    ...SUMS.map((name) => `coalesce(${name}, 0)::VARCHAR AS ${name}`),
  ];
  // Selects one JSON text for each row, because converting two dozen cells to JavaScript values takes ten times as
  // long.
  const rows = `SELECT lpad(ordinal::VARCHAR, 8, '0') AS key, to_json(e)::VARCHAR AS row
    FROM (SELECT ${columns.join(', ')} FROM ${state.runes} LEFT JOIN ${sums} ON rune_id = id WHERE ordinal IN (SELECT ordinal FROM ${changed})) AS e`;
  const sorted = { rows, most: `(SELECT count(*) FROM ${changed})`, key: 'key', within: 'key', rowBytes: ROW_BYTES, select: LINE };
  for await (const { key, values } of documentsIn(linesIn(sortedRows(sorted, limits, store))))
    yield { key, values: values.map((json) => renderEtching(etchingOf(JSON.parse(json) as Row), dialect, tip)) };
}

function etchingOf(row: Row): Etching {
  const joined = (upper: string, lower: string) => BigInt(upper) * 10n ** BigInt(LOWER_DIGITS) + BigInt(lower);
  const { mints, burns, minted_upper, minted_lower, burned_upper, burned_lower, is_counted } = row;
  const [minted, burned] = [joined(minted_upper, minted_lower), joined(burned_upper, burned_lower)];
  return { ...row, counts: is_counted ? { mints, burns, minted, burned } : undefined };
}

/** SQL condition for counts that change an etching: mints and burns change its supply, sends and receives do not. */
const HAS_COUNTS = 'mint + burn > 0';

/**
 * Returns the SQL expression of the height at which a mint window opens or closes. NULL if the height has so many
 * digits that no tip reaches it.
 */
const boundary = (term: string, isOffset: boolean): string =>
  `CASE WHEN length(${term}) <= 15 THEN ${term}::BIGINT ${isOffset ? '+ block_height' : ''} END`;

const BOUNDARIES: readonly string[] = [
  boundary('terms_height_start', false),
  boundary('terms_height_end', false),
  boundary('terms_offset_start', true),
  boundary('terms_offset_end', true),
];

/**
 * Returns the SQL condition for runes whose field `mintable` may change when the tip moves to one of the heights
 * `first` to `last`. `mintable` is about the block after the tip, so the condition is true if the mint window opens or
 * closes at one of these heights plus 1.
 */
const windowMoves = (first: number, last: number): string =>
  `(${BOUNDARIES.map((height) => `coalesce(${height} BETWEEN ${first + 1} AND ${last + 1}, false)`).join(' OR ')})`;

/** Returns SQL that selects `name` and `block_height` of runes whose etchings changed. A rune may have two rows. */
function changedRunes({ before, now, changed }: KnownChange): string {
  const [low, high] = [Math.min(before.tip, now.tip), Math.max(before.tip, now.tip)];
  // Lists have only etchings up to the tip. So if the tip moves, the etchings between the old and the new tip are added
  // to the lists, or removed from them.
  return `SELECT name, block_height FROM ${changed} WHERE block_height <= CASE WHEN is_new THEN ${now.tip} ELSE ${before.tip} END
    UNION ALL SELECT name, block_height FROM ${now.runes} WHERE block_height > ${low} AND block_height <= ${high}`;
}

/** An EtchingChange if both the last build and this build have etchings. */
type KnownChange = { readonly [name in keyof EtchingChange]: NonNullable<EtchingChange[name]> };
const isKnown = (change: EtchingChange): change is KnownChange => change.before !== undefined && change.now !== undefined;

/**
 * Returns the lowest height whose etchings changed; Infinity without changes, or if this build or the last build has no
 * etchings.
 */
export async function lowestChange(change: EtchingChange, store: Store): Promise<number> {
  if (!isKnown(change)) return Number.POSITIVE_INFINITY;
  const lowest = await store.number(`SELECT coalesce(min(block_height), -1) AS number FROM (${changedRunes(change)})`);
  return lowest < 0 ? Number.POSITIVE_INFINITY : lowest;
}

/**
 * Returns the first `count` letters of the name of each changed etching. Ignores names that the protocol forbids.
 * Undefined if this build or the last build has no etchings.
 */
export async function changedFirstLetters(count: number, change: EtchingChange, store: Store): Promise<string[] | undefined> {
  if (!isKnown(change)) return undefined;
  const rows = await store.rows(
    `SELECT DISTINCT left(name, ${count}) AS letters FROM (${changedRunes(change)}) WHERE regexp_full_match(name, '[A-Z]+')`,
    { letters: text },
  );
  return rows.map(({ letters }) => letters);
}
