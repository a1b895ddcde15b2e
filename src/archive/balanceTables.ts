/**
 * Balances of addresses and holders of runes: two kinds of documents (documents.ts).
 *
 * **Changes** have a document for each address with records in the blocks of a level: the sums of its changes by rune.
 * A balance is the sum over all levels, so it is exact at the highest block. A value is a list in JSON: id, number, name,
 * spaced name and divisibility of a rune, and the sum in smallest units, as text.
 *
 * **Holders** have a document for each rune with such records. Its key is the rune's ordinal. In the newest two levels,
 * it has the changes by address. In the levels below, it has all balances as they are after the last block of the level,
 * in the order of the API: a ranking. Of several rankings of a rune, the newest is right. A large ranking has pages, which
 * are documents too. Adding changes to it would take too long, so its list is exact for the end of the rankings only.
 */
import { areDocuments, type DocumentLevel } from './documents.ts';

/** Runes with a balance below zero, which only wrong data has. */
export interface Unbalanced {
  /** Ids of some of them, the oldest first. */
  readonly runes: readonly string[];
  /** Number of others. */
  readonly more: number;
}

/** A level of holders. */
export interface HolderLevel extends DocumentLevel {
  /** In rankings: the ordinals of all runes that have a balance below zero after the last block of the level. */
  readonly unbalanced?: readonly number[];
}

export interface BalanceTables {
  /** Balances in a page of a ranking. A ranking with fewer has no pages. */
  readonly page: number;
  /** Ascending by height. */
  readonly changes: readonly DocumentLevel[];
  /** Ascending by height. */
  readonly holders: readonly HolderLevel[];
  /** Left out if there are none. */
  readonly unbalanced?: Unbalanced | undefined;
}

/** True for the tables of a root. */
export function areBalances(value: unknown): value is BalanceTables {
  const { page, changes, holders, unbalanced } = Object(value) as Readonly<Record<string, unknown>>;
  const hasPage = Number.isSafeInteger(page) && Number(page) > 0;
  return hasPage && areDocuments(changes) && areDocuments(holders) && (unbalanced === undefined || typeof unbalanced === 'object');
}

/** Returns the key of the document of a rune. Keys ascend with ordinals. */
export const holdersKey = (ordinal: number): string => String(ordinal).padStart(8, '0');

/** Returns the key of a page of a ranking, counted from 0. It follows the key of the rune. */
export const rankingPageKey = (ordinal: number, page: number): string => `${holdersKey(ordinal)}.${String(page).padStart(8, '0')}`;

/** Returns the ordinal in a key of a rune's document or page. */
export const ordinalOfKey = (key: string): number => Number.parseInt(key, 10);

/** The first value of a rune's document. */
export interface HoldersHead {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly divisibility: number;
  /** Only in a ranking with pages: how many balances are above zero. All others are at the end. */
  readonly total: number | undefined;
}

/** Parses the first value of a rune's document. Throws for other text. */
export function parseHoldersHead(text: string): HoldersHead {
  const [id, number, name, divisibility, total] = JSON.parse(text) as [string, number, string, number, number?];
  return { id, number, name, divisibility, total };
}

/** Parses another value of a rune's document or page: an address, and smallest units. Throws for other text. */
export function parseHolder(text: string): [address: string, units: bigint] {
  const [address, units] = JSON.parse(text) as [string, string];
  return [address, BigInt(units)];
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
