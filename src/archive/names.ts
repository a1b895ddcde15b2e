/**
 * Keys of runes in tables of names. A rune is found by its id (`840000:3`), its number, and its name in upper case
 * without spacers. These three never look alike, so one table has all of them.
 */
import { sha256, utf8Of } from './sha256.ts';

/**
 * Returns the key of an id, a number or a name: the first 48 bits of a SHA-256. Names with equal keys would have to be
 * searched for, so an etcher cannot fill a part of a table.
 */
export function nameKeyOf(name: string): number {
  const view = new DataView(sha256(utf8Of(`n:${name}`)).buffer);
  return view.getUint32(0) * 0x10000 + view.getUint16(4);
}
