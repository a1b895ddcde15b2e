/**
 * Writes the changes of balances by address (archive/balanceTables.ts). A level depends on the records of its blocks
 * only, so levels of the last build are joined by adding.
 */
import type { DocumentLevel } from '../archive/documents.ts';
import type { LevelRange } from '../archive/levels.ts';
import type { Store } from '../store/duckdb.ts';
import { type Documents, type DocumentWriter, documentsOf, mergeDocuments, type StoredDocument } from './documents.ts';
import type { LevelPlan } from './listedRecords.ts';
import type { OldArchive } from './oldArchive.ts';
import { changesIn, digitsOf } from './unitSql.ts';

/** Receives the documents of a level. */
export type LevelWriter = Pick<DocumentWriter, 'add' | 'finish'>;

/** How levels are written. */
export interface LevelForm<Kind = 'changes' | 'holders'> {
  readonly old: OldArchive | undefined;
  /** Begins a level. */
  readonly writer: (kind: Kind, range: LevelRange) => LevelWriter;
}

/** Writes the levels that the last build does not have. `before` are its levels. Needs the table `listed_records`. */
export async function writeChanges(
  plans: readonly LevelPlan[],
  before: readonly DocumentLevel[],
  form: LevelForm,
  store: Store,
): Promise<DocumentLevel[]> {
  const levels: DocumentLevel[] = [];
  for (const plan of plans) {
    const level = await joinLevel('changes', plan, before, form, newChanges(plan.first, plan.last, store), addChanges);
    if (level !== undefined) levels.push(level);
  }
  return levels;
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
  join: (values: readonly (readonly string[])[]) => readonly string[],
): Promise<DocumentLevel | undefined> {
  const kept = reusedLevels(plan, before);
  if (plan.isSame) return kept[0];
  const sources: Documents[] = [added];
  if (old !== undefined) for (const level of kept) sources.push(documentsOf(old, level));
  const documents = writer(kind, plan);
  for await (const document of mergeDocuments(sources, join)) if (document.values.length > 0) documents.add(document);
  return documents.finish(plan);
}

/** SQL of the first part of a value, up to the sum. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)`;

/** Yields the documents of listed records. */
function newChanges(first: number, last: number, store: Store): AsyncGenerator<StoredDocument> {
  return groupRows(
    `SELECT url_encode(address) AS key, rune || ',"' || ${digitsOf('upper', 'lower')} || '"]' AS value
     FROM (${changesIn(first, last)}) JOIN (SELECT id, number, ${RUNE} AS rune FROM state.runes) USING (id) ORDER BY key, number, id`,
    store,
  );
}

/**
 * Yields documents from the rows of a query: keys, ascending, and values. DuckDB sorts more rows than fit into memory,
 * but it cannot make such long lists.
 */
export async function* groupRows(sql: string, store: Store): AsyncGenerator<StoredDocument> {
  let [key, values]: [string | undefined, string[]] = [undefined, []];
  for await (const chunk of store.stream(sql)) {
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

/** Joins the documents of an address: adds the changes of each rune. */
function addChanges(documents: readonly (readonly string[])[]): string[] {
  const runes = new Map<string, { readonly number: number; readonly id: string; units: bigint }>();
  for (const value of documents.flat()) {
    const at = value.lastIndexOf(',"');
    const rune = value.slice(0, at);
    const units = BigInt(value.slice(at + 2, -2));
    const known = runes.get(rune);
    if (known !== undefined) {
      known.units += units;
      continue;
    }
    const [id, number] = JSON.parse(`${rune}]`) as [string, number];
    runes.set(rune, { id, number, units });
  }
  const sorted = [...runes].sort(([, a], [, b]) => a.number - b.number || (a.id < b.id ? -1 : 1));
  return sorted.map(([rune, { units }]) => `${rune},"${units}"]`);
}
