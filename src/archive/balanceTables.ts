/**
 * Balances of addresses and holders of runes: two kinds of documents (documents.ts).
 *
 * Both have **entries**: what a pair of an address and a rune has after the last block of a level, and what it had before
 * the first one. So of several levels that have a pair, the newest is right. In the order of the API, an entry is removed
 * where the old balance places it, and inserted where the new one does.
 *
 * **Balances** have a document for each address with records in the blocks of a level, with an entry for each rune. An
 * address with more entries than a page has a document for each rune there instead, and its whole list.
 *
 * **Holders** have a document for each rune whose balances changed in the level, with an entry for each address. A rune
 * with more entries than a page has its whole list there instead. In the newest two levels, a rune that had a long list
 * before only has a mark: its whole list would be written with every block. The list is then as of an older block.
 *
 * **A whole list** has all balances above zero after the last block of the level, in the order of the API. The document of
 * the key has their number and the first balance of each page, and the pages follow it. A reader joins the newest whole list
 * with the entries of the levels above it, of which there is at most a page for each level.
 */

/** Returns the key of the document of a rune. Keys ascend with ordinals. */
export const runeKey = (ordinal: number): string => String(ordinal).padStart(8, '0');

/** Returns the key of a rune at an address with many. It follows the pages of the address, whose key is `key`. */
export const pairKey = (key: string, ordinal: number): string => `${key} r${runeKey(ordinal)}`;

/** True for the key of a rune at an address. */
export const isPairKey = (key: string): boolean => key.includes(' r');

/** An entry of a list. Units are the smallest ones. */
export interface Entry {
  /** Identifies the entry in its list. */
  readonly other: string | number;
  /** After the last block of the level. */
  readonly units: bigint;
  /** Before the first block of the level; 0 in a whole list. */
  readonly before: bigint;
}

/** What an address has of a rune. `other` is the ordinal of the rune. */
export interface Balance extends Entry {
  readonly other: number;
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spacedName: string;
  readonly divisibility: number;
}

/** Parses an entry of an address. Throws for other text. */
export function parseBalance(text: string): Balance {
  const [other, id, number, name, spacedName, divisibility, units, before = '0'] = JSON.parse(text) as [
    ...[ordinal: number, id: string, number: number, name: string, spacedName: string, divisibility: number],
    ...[units: string, before?: string],
  ];
  return { other, id, number, name, spacedName, divisibility, units: BigInt(units), before: BigInt(before) };
}

/** Returns the start of the entry of a rune. Other entries do not have it. */
export const balanceStart = (ordinal: number): string => `[${ordinal},`;

/** Parses the first value of an address's document: the length of its whole list, or undefined if the value is an entry. Throws for other text. */
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
  /** How many more holders there are after the level than before it. */
  readonly change: number;
  /** The length of the whole list, if the document has one; null for the mark of a rune with too many entries. */
  readonly total: number | null | undefined;
}

/** Parses the first value of a rune's document. Throws for other text. */
export function parseHoldersHead(text: string): HoldersHead {
  const [id, number, name, divisibility, change, total] = JSON.parse(text) as [string, number, string, number, number, (number | null)?];
  return { id, number, name, divisibility, change, total };
}

/** Balance of a holder. `other` is the address. */
export interface Holder extends Entry {
  readonly other: string;
}

/** Parses an entry of a rune. Throws for other text. */
export function parseHolder(text: string): Holder {
  const [other, units, before = '0'] = JSON.parse(text) as [string, string, string?];
  return { other, units: BigInt(units), before: BigInt(before) };
}

/** Orders addresses by their bytes in UTF-8. Plain comparison orders characters above U+FFFF wrongly. */
export function compareAddresses(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    if (a[i] === b[i]) continue;
    const [x = 0, y = 0] = [a.charCodeAt(i), b.charCodeAt(i)];
    const [isHighX, isHighY] = [x >= 0xd800 && x < 0xe000, y >= 0xd800 && y < 0xe000];
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}
