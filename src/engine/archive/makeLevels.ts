/**
 * Makes the levels of lists from plans (listedRecords.ts) and those of the last build.
 */

import { sortedRows, type UnsortedRows } from '../../duckdb/sortedRows.ts';
import type { Store } from '../../duckdb/store.ts';
import type { DocumentLevel, LevelRange } from '../../format/levels.ts';
import type { Limits, WorkLimits } from '../../limits.ts';
import type { Documents, DocumentWriter, StoredDocument } from './documentWriter.ts';
import type { LevelPlan } from './listedRecords.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Receives the documents of a level. */
export type LevelWriter = Pick<DocumentWriter, 'add' | 'finish'>;

/** How levels of documents are written. */
export interface LevelForm<Kind> {
  readonly old: StoredArchive | undefined;
  /** Begins a level. */
  readonly writer: (kind: Kind, range: LevelRange) => LevelWriter;
  readonly limits: Limits;
  /** Folder for temporary files. */
  readonly scratch: string;
}

/** Returns the levels of the last build that a plan reuses. No two levels begin at one height. */
export const reusedLevels = <Level extends LevelRange>({ reused }: LevelPlan, before: readonly Level[] = []): Level[] =>
  before.filter((level) => reused.some(({ first }) => first === level.first));

/** Returns the levels of a list, the lowest first. `make` makes those that the last build, whose levels are `before`, does not have. */
export async function makeLevels<Level extends LevelRange>(
  plans: readonly LevelPlan[],
  before: readonly Level[],
  make: (plan: LevelPlan) => Promise<Level | undefined>,
): Promise<Level[]> {
  const levels: Level[] = [];
  for (const plan of plans) {
    const level = plan.isSame ? reusedLevels(plan, before)[0] : await make(plan);
    if (level !== undefined) levels.push(level);
  }
  return levels;
}

/** Writes a level of documents, ascending by key. One without values is left out. Returns undefined without documents. */
export async function writeDocuments(to: LevelWriter, range: LevelRange, documents: Documents): Promise<DocumentLevel | undefined> {
  for await (const document of documents) if (document.values.length > 0) to.add(document);
  return to.finish(range);
}

export type Row = readonly unknown[];

/** Sorts rows, and yields those together that belong to the row before. DuckDB sorts more rows than fit into memory, but cannot group them. */
export async function* groupRows(
  rows: UnsortedRows,
  areTogether: (before: Row, row: Row) => boolean,
  limits: Pick<WorkLimits, 'sortedAtOnce'>,
  store: Store,
): AsyncGenerator<readonly Row[]> {
  let group: Row[] = [];
  for await (const chunk of sortedRows(rows, limits, store)) {
    for (const row of chunk.getRows()) {
      const before = group.at(-1);
      if (before !== undefined && !areTogether(before, row)) {
        yield group;
        group = [];
      }
      group.push(row);
    }
  }
  if (group.length > 0) yield group;
}

/** Yields documents from sorted rows: keys, and texts of which `valuesOf` makes the values. */
export async function* documentsIn(
  rows: UnsortedRows,
  limits: Pick<WorkLimits, 'sortedAtOnce'>,
  store: Store,
  valuesOf = (group: readonly Row[]) => group.map(([, value]) => String(value)),
): AsyncGenerator<StoredDocument> {
  for await (const group of groupRows(rows, ([before], [key]) => before === key, limits, store))
    yield { key: String(group[0]?.[0]), values: valuesOf(group) };
}
