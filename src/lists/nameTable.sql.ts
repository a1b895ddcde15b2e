/** Writes the table of names of an archive (lists/nameTable.ts). */
import type { Store } from '../duckdb/store.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { makeLevels } from '../engine/archive/makeLevels.ts';
import { entryChunks, type TableWriter } from '../engine/archive/tableWriter.ts';
import type { EtchingTable } from '../engine/state/knownEtchings.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { LevelRange } from '../format/levels.ts';
import type { Level } from '../format/sortedTable.ts';
import type { WorkLimits } from '../limits.ts';
import { yieldNow } from '../yieldNow.ts';
import { NAME_PREFIX } from './nameTable.ts';

/** Maximum number of etchings. The table stores the ordinal of an etching in 3 bytes. */
export const MOST_ETCHINGS = 2 ** 24;

const numberIn = (id: string, part: 1 | 2): string => `try_cast(split_part(${id}, ':', ${part}) AS BIGINT)`;

/**
 * Returns the SQL condition for a rune id that fits into the table: a number of up to 3 bytes and a number of up to 4
 * bytes. `id` is an SQL expression.
 */
export const isRuneId = (id: string): string =>
  `coalesce(regexp_full_match(${id}, '(0|[1-9][0-9]*):(0|[1-9][0-9]*)') AND ${numberIn(id, 1)} < ${2 ** 24} AND ${numberIn(id, 2)} < ${2 ** 32}, false)`;

type RuneTables = Pick<StateTables, 'runes' | 'blockRunes'>;

/**
 * Writes the levels (format/levels.ts) that changed since the last build. `old` has the levels of the last build.
 * Returns all levels of this build. `etchings` is undefined in a mirror without etchings.
 */
export const writeNames = (
  plans: readonly LevelPlan[],
  old: readonly Level[],
  etchings: EtchingTable | undefined,
  state: RuneTables,
  writer: () => TableWriter,
  limits: WorkLimits,
  store: Store,
): Promise<Level[]> => makeLevels(plans, old, (plan) => writeLevel(plan, runesOf(plan, etchings, state), writer(), limits, store));

/** Returns SQL that selects the runes of a level: `id`, `number`, `name`, `ordinal`. */
function runesOf({ first, last }: LevelRange, etchings: EtchingTable | undefined, state: RuneTables): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  return etchings === undefined
    ? `SELECT DISTINCT rune_id AS id, number, name, 0 AS ordinal FROM ${state.blockRunes} WHERE ${isIn}`
    : `SELECT id, number, name, ordinal FROM (FROM ${etchings} WHERE ${isIn}) JOIN (SELECT id, number, name FROM ${state.runes}) USING (id)`;
}

async function writeLevel(
  range: LevelRange,
  runes: string,
  writer: TableWriter,
  limits: WorkLimits,
  store: Store,
): Promise<Level | undefined> {
  // Omits names that no valid request contains. If the id of a rune does not fit into the fields of an entry, stores
  // 0:0 as the id. Readers identify such a rune by its ordinal.
  const part = (number: 1 | 2) => `CASE WHEN ${isRuneId('id')} THEN ${numberIn('id', number)} ELSE 0 END`;
  const entries = `SELECT DISTINCT ('0x' || left(sha256('${NAME_PREFIX}' || rune_name), 12))::UBIGINT::DOUBLE AS key, height, first, count
    FROM (SELECT unnest([id, number::VARCHAR, name]) AS rune_name, ${part(1)}::DOUBLE AS height, ${part(2)}::DOUBLE AS first, ordinal::DOUBLE AS count
      FROM (${runes}))
    WHERE regexp_full_match(rune_name, '[0-9]+(:[0-9]+)?|[A-Z]+')`;
  for await (const chunk of entryChunks(entries, limits, store)) {
    for (const entry of chunk) writer.add(entry);
    await yieldNow();
  }
  return writer.finish(range);
}
