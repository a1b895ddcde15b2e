/**
 * The names by which runes are found.
 */
import { int, type Store, text } from '../store/duckdb.ts';

/** What a rune is found by, and its ordinal. */
export interface NamedRune {
  readonly ordinal: number;
  /** Id, number, and name in upper case without spacers. Names of other forms cannot be requested. */
  readonly names: readonly string[];
}

/** Reads the runes etched at heights from `first` to `last`, oldest first. Needs the table `etchings`. */
export async function readNames(first: number, last: number, store: Store): Promise<NamedRune[]> {
  const rows = await store.rows(
    `SELECT ordinal, id, number, name FROM etchings e JOIN state.runes r USING (id)
     WHERE e.block_height BETWEEN ${first} AND ${last} ORDER BY ordinal`,
    { ordinal: int, id: text, number: int, name: text },
  );
  return rows.map(({ ordinal, ...rune }) => ({ ordinal, names: namesOf(rune) }));
}

/** Returns the names of a rune that requests may have. */
export const namesOf = ({ id, number, name }: { readonly id: string; readonly number: number; readonly name: string }): string[] =>
  [id, String(number), name].filter((one) => /^(?:[0-9]+(?::[0-9]+)?|[A-Z]+)$/.test(one));
