/** Writes the names of runes of an archive (lists/names.ts). */
import { joinedBlobs } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import type { Store } from '../duckdb/store.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { type LevelForm, makeLevels } from '../engine/archive/makeLevels.ts';
import { PagedLists } from '../engine/archive/pagedLists.ts';
import type { Etchings } from '../engine/state/knownEtchings.ts';
import type { LevelRange } from '../format/levels.ts';
import { yieldNow } from '../yieldNow.ts';

const numberIn = (id: string, part: 1 | 2): string => `try_cast(split_part(${id}, ':', ${part}) AS BIGINT)`;

/**
 * Returns the SQL condition for a rune id that fits into the table: a number of up to 3 bytes and a number of up to 4 bytes. `id` is an SQL
 * expression.
 */
export const isRuneId = (id: string): string =>
  `coalesce(regexp_full_match(${id}, '(0|[1-9][0-9]*):(0|[1-9][0-9]*)') AND ${numberIn(id, 1)} < ${2 ** 24} AND ${numberIn(id, 2)} < ${2 ** 32}, false)`;

interface NameForm extends LevelForm<'names'> {
  /** Undefined in a mirror without etchings. */
  readonly etchings: Etchings | undefined;
}

/** Writes the levels that changed since the last build. Returns all levels. */
export const writeNames = (plans: readonly LevelPlan[], form: NameForm, store: Store) =>
  makeLevels(plans, form.old?.root.lists?.names, async (plan) => {
    // Omits names that no valid request contains.
    const rows = `SELECT rune_name, concat('[', ordinal, ',', to_json(id), ']') AS rune
      FROM (SELECT unnest([id, number::VARCHAR, name]) AS rune_name, id, ordinal FROM (${runesOf(plan, form)}))
      WHERE regexp_full_match(rune_name, '[0-9]+(:[0-9]+)?|[A-Z]+')`;
    const bound = form.etchings && 3 * form.etchings.total;
    const to = form.open('names', plan);
    const lists = new PagedLists(to, form.limits.listPage);
    let last = '';
    for await (const chunk of sortedRows(
      { rows, bound, key: 'rune_name', within: 'rune', select: 'rune_name, rune' },
      form.limits,
      store,
    )) {
      await yieldNow();
      const [names, runes] = [textsIn(chunk, 0), textsIn(chunk, 1)];
      for (const [row, name] of names.entries()) {
        if (name !== last) lists.list(name);
        last = name;
        lists.text(runes[row] ?? '');
      }
    }
    lists.finish();
    return to.finish(plan);
  });

function textsIn(chunk: Parameters<typeof joinedBlobs>[0], column: number): string[] {
  const { bytes, offsets } = joinedBlobs(chunk, column);
  return Array.from({ length: chunk.rowCount }, (_, row) => bytes.toString('latin1', offsets[row], offsets[row + 1]));
}

/** Returns SQL that selects the runes of a level: `id`, `number`, `name`, `ordinal`. */
function runesOf({ first, last }: LevelRange, { etchings, state }: NameForm): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  return etchings === undefined
    ? `SELECT DISTINCT rune_id AS id, number, name, 0 AS ordinal FROM ${state.blockRunes} WHERE ${isIn}`
    : `SELECT id, number, name, ordinal FROM (FROM ${etchings.table} WHERE ${isIn}) JOIN (SELECT id, number, name FROM ${state.runes}) USING (id)`;
}
