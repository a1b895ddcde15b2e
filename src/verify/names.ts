/**
 * Counts the entries that the table of names of an archive must have (archive/names.ts).
 */
import { nameKeyOf } from '../archive/names.ts';
import type { EntrySum } from './archive.ts';

/** A rune that the table must have. `ordinal` is its number in the list of etchings; 0 without etchings. */
interface NamedRune {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly ordinal: number;
}

const NAME = /^(?:[0-9]+(?::[0-9]+)?|[A-Z]+)$/;
const RUNE_ID = /^(0|[1-9][0-9]{0,7}):(0|[1-9][0-9]{0,9})$/;

/** Adds the entries of a rune to the sum of a level. `known` has names and ids that were added, if any may come again. */
export function addNames({ id, number, name, ordinal }: NamedRune, sum: EntrySum, known?: Set<string>): void {
  const [height = 0, first = 0] = RUNE_ID.exec(id)?.slice(1).map(Number) ?? [];
  const fits = height < 2 ** 24 && first < 2 ** 32;
  for (const one of [id, String(number), name]) {
    if (!NAME.test(one) || known?.has(`${one} ${id}`) === true) continue;
    known?.add(`${one} ${id}`);
    sum.add({ key: nameKeyOf(one), height: fits ? height : 0, first: fits ? first : 0, count: ordinal });
  }
}
