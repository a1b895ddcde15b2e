/**
 * Names of runes: finds a rune by its id (`840000:3`), its number, or its name in upper case without spacers, which is the key of a list in
 * documents (format/pagedList.ts). An id, a number and a name are never equal. The root has the directories, so a look-up takes one round
 * of requests.
 */
import type { Archive } from '../format/archiveReader.ts';
import { orDamaged } from '../format/documents.ts';
import type { DocumentLevel } from '../format/levels.ts';
import { findPagedList } from '../format/pagedList.ts';

/** A rune that has the id, number or name that was looked up. */
export interface RuneEntry {
  /** Position of the rune in the order of etchings, from 0 on. Always 0 in a mirror without etchings. */
  readonly ordinal: number;
  readonly id: string;
}

/** Finds the runes that have an id, number or name. Only wrong data has several. */
export async function lookUpName(archive: Archive, names: readonly DocumentLevel[], name: string): Promise<RuneEntry[]> {
  const list = await findPagedList(archive, names, name, 0, parseRunes);
  // Returns each rune once. In a mirror without etchings, each level with records of a rune has an entry for the rune.
  const runes = new Map((await list.read(0, list.total)).map((rune) => [rune.id, rune]));
  return [...runes.values()];
}

/** Parses entries, which are JSON lists of the ordinal and the id. */
const parseRunes = (values: readonly string[]): RuneEntry[] =>
  orDamaged(() =>
    values.map((value) => {
      const [ordinal, id] = JSON.parse(value) as readonly [number, string];
      if (!Number.isSafeInteger(ordinal) || ordinal < 0 || typeof id !== 'string') throw new Error('not a rune');
      return { ordinal, id };
    }),
  );
