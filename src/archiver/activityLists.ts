/**
 * Writes the lists of activity of an archive (archive/activityTables.ts): merges, list by list, the records that were
 * listed (listedRecords.ts) with the levels of the last build that belong to a level.
 */

import { headEntries, POINTERS_PER_BLOCK, type Pointer } from '../archive/activityTables.ts';
import type { ActivityLevel } from '../archive/listTables.ts';
import type { TableEntry } from '../archive/sortedTable.ts';
import type { Limits } from '../limits.ts';
import type { Store } from '../store/duckdb.ts';
import { yieldNow } from '../yieldNow.ts';
import { ActivityRows, bytesBelow, HEIGHT, IN_PAGE, LENGTH, LOWER, POSITION, type RowsForm, UPPER } from './activityRows.ts';
import { reusedLevels } from './changes.ts';
import { Cursor } from './cursor.ts';
import type { LevelPlan } from './listedRecords.ts';
import type { PutFile } from './segments.ts';
import { ChangedArchiveError, type StoredArchive } from './storedArchive.ts';
import { entriesOf, PointerWriter, pointersOf, TableWriter } from './tables.ts';

interface ActivityForm extends RowsForm {
  readonly limits: Pick<Limits, 'entriesPerCount' | 'sortedAtOnce'>;
  /** Size that files do not exceed, in bytes. */
  readonly objectSize: number;
}

/** Writes the levels that the last build does not have. */
export async function writeActivity(
  plans: readonly LevelPlan[],
  old: StoredArchive | undefined,
  form: ActivityForm,
  put: PutFile,
  store: Store,
): Promise<ActivityLevel[]> {
  const { objectSize } = form;
  const levels: ActivityLevel[] = [];
  for (const plan of plans) {
    const begin = await bytesBelow(plan.first, form.blocks, store);
    const reused = (old?.root.lists?.activity ?? []).filter(({ heads }) => reusedLevels(plan, [heads]).length > 0);
    if (plan.isSame) {
      for (const level of reused) levels.push({ ...level, begin });
      continue;
    }
    const parts: OldLists[] = [];
    const rows = new ActivityRows(plan, form, store);
    const heads = new TableWriter(objectSize, form.limits, put);
    const pointers = new PointerWriter(objectSize, put);
    try {
      for (const level of reused) {
        if (old !== undefined) parts.push(new OldLists(old, level, (await bytesBelow(level.heads.first, form.blocks, store)) - begin));
      }
      await merge(rows, parts, heads, pointers);
    } finally {
      await rows.close();
      for (const part of parts) part.close();
    }
    const table = heads.finish(plan);
    if (table !== undefined) levels.push({ begin, heads: table, pointers: pointers.finish(plan) });
  }
  return levels;
}

/** Merges rows and old levels, the lowest first, into a level. */
async function merge(rows: ActivityRows, parts: readonly OldLists[], heads: TableWriter, pointers: PointerWriter): Promise<void> {
  await rows.next();
  for (;;) {
    await yieldNow();
    let [upper, lower] = rows.isAtRow ? [rows.at(UPPER), rows.at(LOWER)] : [Number.POSITIVE_INFINITY, 0];
    for (const { entry } of parts) {
      if (entry !== undefined && (entry.key < upper || (entry.key === upper && entry.height < lower)))
        [upper, lower] = [entry.key, entry.height];
    }
    if (upper === Number.POSITIVE_INFINITY) return;
    const position = pointers.total;
    for (let below = parts.length; below >= 0; below -= 1) {
      const last = parts[below - 1]?.last ?? -1;
      // Rows descend by height, so these are above the part.
      while (rows.at(UPPER) === upper && rows.at(LOWER) === lower && rows.at(HEIGHT) > last) {
        pointers.add(rows.at(POSITION), rows.at(LENGTH), rows.at(IN_PAGE));
        const waiting = rows.next();
        if (waiting !== undefined) await waiting;
      }
      await parts[below - 1]?.copy(upper, lower, pointers);
    }
    for (const entry of headEntries({ upper, lower }, { position, count: pointers.total - position })) heads.add(entry);
  }
}

/** The lists of a level of the last build, ascending by key. */
class OldLists {
  readonly #entries: Cursor<TableEntry>;
  readonly #pointers: Cursor<Pointer>;
  /** The highest block of the level. */
  readonly last: number;
  /** Size of the pages of the new level that are below the old one, in bytes. */
  readonly #shift: number;
  #position = 0;

  constructor(old: StoredArchive, { heads, pointers }: ActivityLevel, shift: number) {
    this.#entries = new Cursor(entriesOf(old, heads));
    this.#pointers = new Cursor(pointersOf(old, pointers));
    this.last = heads.last;
    this.#shift = shift;
    this.#entries.next();
  }

  /** The current entry of the heads; undefined after the last. */
  get entry(): TableEntry | undefined {
    return this.#entries.current;
  }

  /** Copies the pointers of a list, if the level has it. */
  async copy(upper: number, lower: number, to: PointerWriter): Promise<void> {
    for (; this.entry?.key === upper && this.entry.height === lower; this.#entries.next()) {
      const { first, count } = this.entry;
      if (first !== this.#position) throw new ChangedArchiveError('a list of the archive was changed since the last build');
      for (let i = 0; i < count; i += 1) {
        if (i % POINTERS_PER_BLOCK === 0) await yieldNow();
        this.#pointers.next();
        const pointer = this.#pointers.current;
        if (pointer === undefined) throw new ChangedArchiveError('a list of the archive was changed since the last build');
        to.add(pointer.position + this.#shift, pointer.length, pointer.record);
      }
      this.#position += count;
    }
  }

  close(): void {
    this.#entries.close();
    this.#pointers.close();
  }
}
