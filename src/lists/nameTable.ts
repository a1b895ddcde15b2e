/**
 * The table of names: finds a rune by its id (`840000:3`), its number, or its name in upper case without spacers. An
 * id, a number and a name are never equal, so one sorted table (format/sortedTable.ts) has all three.
 *
 * The key of an entry is the first 48 bits of the SHA-256 of the id, number or name with a prefix. Look-ups need evenly
 * distributed keys. Because the key is a hash, nobody can etch many names with keys close to each other. The other
 * fields describe the rune: `height` and `first` are the two numbers of its id, and `count` is its ordinal
 * (etchings.ts). Different names may have the same key, so the caller must compare the names.
 */
import type { Archive } from '../format/archiveReader.ts';
import { sha256, utf8Of } from '../format/sha256.ts';
import { type Level, readKey } from '../format/sortedTable.ts';

/** A rune that may have the id, number or name that was looked up. */
export interface RuneEntry {
  /** Position of the rune in the order of etchings, from 0 on. Always 0 in a mirror without etchings. */
  readonly ordinal: number;
  readonly id: string;
}

/** Prefix of the text that is hashed to the key of a name. */
export const NAME_PREFIX = 'n:';

/** Returns the key of an id, a number or a name: 48 bits. */
export const nameKeyOf = (name: string): number => readKey(new DataView(sha256(utf8Of(`${NAME_PREFIX}${name}`)).buffer), 0);

/** Finds the runes that have an id, number or name with the same key as `name`. Other runes may have this key, too. */
export async function lookUpName(archive: Archive, names: readonly Level[], name: string): Promise<RuneEntry[]> {
  const entries = await archive.find(names, nameKeyOf(name));
  // Returns each rune once. In a mirror without etchings, each level with records of a rune has an entry for the rune.
  const runes = new Map(entries.map(({ height, first, count }) => [`${height}:${first}`, count]));
  return [...runes].map(([id, ordinal]) => ({ ordinal, id }));
}
