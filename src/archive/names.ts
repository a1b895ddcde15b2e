/**
 * The table of names: finds a rune by its id (`840000:3`), its number, or its name in upper case without spacers. These
 * three never look alike, so one sorted table (sortedTable.ts) has all of them.
 *
 * The key of an entry is the first 48 bits of a SHA-256 of the name, so that an etcher cannot fill a part of the table.
 * The other fields have the rune: `height` and `first` are the two numbers of its id, `count` is its ordinal among the
 * etchings. Different names may have the same key, so the caller checks what it finds.
 */
import type { Archive } from './reader.ts';
import { sha256, utf8Of } from './sha256.ts';
import { type Level, readKey } from './sortedTable.ts';

/** A rune that may have the name that was looked up. */
export interface RuneEntry {
  /** Its number in the list of etchings, the oldest of which is 0. Also 0 in a mirror without etchings. */
  readonly ordinal: number;
  readonly id: string;
}

/** The text whose SHA-256 begins with the key of a name. */
export const NAME_PREFIX = 'n:';

/** Returns the key of an id, a number or a name: 48 bits. */
export const nameKeyOf = (name: string): number => readKey(new DataView(sha256(utf8Of(`${NAME_PREFIX}${name}`)).buffer), 0);

/** Finds the runes whose id, number or name has the same key as this one. */
export async function lookUpName(archive: Archive, names: readonly Level[], name: string): Promise<RuneEntry[]> {
  const entries = await archive.find(names, nameKeyOf(name));
  // Without etchings, a rune is in each level that has records of it.
  const runes = new Map(entries.map(({ height, first, count }) => [`${height}:${first}`, count]));
  return [...runes].map(([id, ordinal]) => ({ ordinal, id }));
}
