/**
 * Joins levels of documents with those of the last build.
 */
import type { DocumentLevel, LevelRange } from '../archive/levels.ts';
import type { sortedRows } from '../store/sortedRows.ts';
import { type Documents, type DocumentWriter, documentsOf, type JoinValues, mergeDocuments, type StoredDocument } from './documents.ts';
import type { LevelPlan } from './listedRecords.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Receives the documents of a level. */
export type LevelWriter = Pick<DocumentWriter, 'add' | 'finish'>;

/** How levels are written. */
export interface LevelForm<Kind> {
  readonly old: StoredArchive | undefined;
  /** Begins a level. */
  readonly writer: (kind: Kind, range: LevelRange) => LevelWriter;
}

/** Returns the levels of the last build that a plan reuses. */
export const reusedLevels = <Level extends DocumentLevel>({ reused }: LevelPlan, before: readonly Level[]): Level[] =>
  before.filter((level) => reused.some(({ first, last }) => first === level.first && last === level.last));

/**
 * Writes a level of new documents and those of the levels that it reuses. A document without values is left out. Returns
 * undefined without documents.
 */
export async function joinLevel<Kind>(
  kind: Kind,
  plan: LevelPlan,
  before: readonly DocumentLevel[],
  { old, writer }: LevelForm<Kind>,
  added: AsyncIterable<StoredDocument>,
  join: JoinValues,
): Promise<DocumentLevel | undefined> {
  const kept = reusedLevels(plan, before);
  if (plan.isSame) return kept[0];
  const sources: Documents[] = [added];
  if (old !== undefined) for (const level of kept) sources.push(documentsOf(old, level));
  const documents = writer(kind, plan);
  for await (const document of mergeDocuments(sources, join)) if (document.values.length > 0) documents.add(document);
  return documents.finish(plan);
}

/** Yields documents from sorted rows: keys and values. DuckDB can sort more rows than fit into memory, but cannot make such long lists. */
export async function* groupRows(chunks: ReturnType<typeof sortedRows>): AsyncGenerator<StoredDocument> {
  let [key, values]: [string | undefined, string[]] = [undefined, []];
  for await (const chunk of chunks) {
    for (const [next, value] of chunk.getRows()) {
      if (next !== key) {
        if (key !== undefined) yield { key, values };
        [key, values] = [String(next), []];
      }
      values.push(String(value));
    }
  }
  if (key !== undefined) yield { key, values };
}
