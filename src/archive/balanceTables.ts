/**
 * Balances of addresses and holders of runes: two kinds of documents (documents.ts).
 *
 * An **entry** has the balance of an address in a rune: after the last block of a level, and before its first block. If
 * several levels have an entry for the pair, the newest level is right. In the order of the API, a change removes the
 * entry at the position of the old balance, and inserts it at the position of the new balance.
 *
 * **Balances** have a document for each address with records in the blocks of a level, with an entry for each rune. If
 * these are more entries than a page has, the level has a document for each of these runes and the whole list instead.
 *
 * **Holders** have a document for each rune whose balances changed in the level, with an entry for each address. If
 * these are more entries than a page has, the level has the whole list instead. In the newest two levels, a rune whose
 * list was long before has only a mark, because its whole list would be written with every block. Answers then have the
 * list as of an older block.
 *
 * **A whole list** has all balances above zero after the last block of the level, in the order of the API. The document
 * of the key has the length of the list and the first entry of each page. Its pages are documents of their own. A
 * reader joins the newest whole list with the entries of the levels above, at most a page of entries for each level.
 */

/** Returns the key of a rune's document. The ordinal is the rune's position in the order of etchings, from 0 on. */
export const runeKey = (ordinal: number): string => String(ordinal).padStart(8, '0');

/** Returns the key of a rune at an address with a whole list. The key sorts after the pages of the list with `key`. */
export const pairKey = (key: string, ordinal: number): string => `${key} r${runeKey(ordinal)}`;

/** True for a key that `pairKey` made. */
export const isPairKey = (key: string): boolean => key.includes(' r');

/** An entry of a list. Balances are in smallest units. */
export interface Entry {
  /** The ordinal of the rune in the list of an address, or the address in the list of a rune. */
  readonly other: string | number;
  /** Balance after the last block of the level. */
  readonly units: bigint;
  /** Balance before the first block of the level; 0 in a whole list. */
  readonly before: bigint;
}

/** Balance of a rune in the list of an address. `other` is the ordinal of the rune. */
export interface Balance extends Entry {
  readonly other: number;
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spacedName: string;
  readonly divisibility: number;
}

/** Parses an entry of an address's list. Throws for other text. */
export function parseBalance(text: string): Balance {
  const [other, id, number, name, spacedName, divisibility, units, before = '0'] = JSON.parse(text) as [
    ...[ordinal: number, id: string, number: number, name: string, spacedName: string, divisibility: number],
    ...[units: string, before?: string],
  ];
  return { other, id, number, name, spacedName, divisibility, units: BigInt(units), before: BigInt(before) };
}

/** Returns the prefix by which the entry of a rune is found in the list of an address. */
export const balanceStart = (ordinal: number): string => `[${ordinal},`;

/** Parses an address's first value: the length of its whole list, or undefined for an entry. Throws for other text. */
export function parseTotal(text: string): number | undefined {
  const value = JSON.parse(text) as number | unknown[];
  return typeof value === 'number' ? value : undefined;
}

/** The first value of a rune's document. */
export interface HoldersHead {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly divisibility: number;
  /** Number of holders after the level, minus the number before it. */
  readonly change: number;
  /** Length of the whole list; null for a mark; undefined if the document has entries. */
  readonly total: number | null | undefined;
}

/** Parses the first value of a rune's document. Throws for other text. */
export function parseHoldersHead(text: string): HoldersHead {
  const [id, number, name, divisibility, change, total] = JSON.parse(text) as [string, number, string, number, number, (number | null)?];
  return { id, number, name, divisibility, change, total };
}

/** Balance of a holder in the list of a rune. `other` is the address. */
export interface Holder extends Entry {
  readonly other: string;
}

/** Parses an entry of a rune's list. Throws for other text. */
export function parseHolder(text: string): Holder {
  const [other, units, before = '0'] = JSON.parse(text) as [string, string, string?];
  return { other, units: BigInt(units), before: BigInt(before) };
}

/** Compares addresses by their UTF-8 bytes. `<` compares UTF-16 units, so it orders characters above U+FFFF wrongly. */
export function compareAddresses(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    if (a[i] === b[i]) continue;
    const [x = 0, y = 0] = [a.charCodeAt(i), b.charCodeAt(i)];
    const [isHighX, isHighY] = [x >= 0xd800 && x < 0xe000, y >= 0xd800 && y < 0xe000];
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}
