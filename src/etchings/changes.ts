/**
 * Finds the etchings that a build changed.
 */
import { int, type Store, text } from '../store/duckdb.ts';
import type { Etchings } from './facts.ts';

/** SQL that is true for rows of counts that change an etching. Sends and receipts do not. */
export const HAS_COUNTS = 'mint + burn > 0';

/** The height where a mint window opens or closes, in SQL. NULL if it never does: no tip has so many digits. */
const boundary = (term: string, isOffset: boolean): string =>
  `CASE WHEN length(${term}) <= 15 THEN ${term}::BIGINT ${isOffset ? '+ block_height' : ''} END`;

const BOUNDARIES: readonly string[] = [
  boundary('terms_height_start', false),
  boundary('terms_height_end', false),
  boundary('terms_offset_start', true),
  boundary('terms_offset_end', true),
];

/**
 * Returns SQL that is true for rows of the runes table whose mint window opens or closes after one of the blocks from height `first`
 * to `last`. `mintable` is about the block after the tip.
 */
export const windowMoves = (first: number, last: number): string =>
  `(${BOUNDARIES.map((height) => `coalesce(${height} BETWEEN ${first + 1} AND ${last + 1}, false)`).join(' OR ')})`;

/** SQL of etchings that a build added, or whose row in the runes table it changed. */
const rowsOnlyIn = (one: Etchings, other: Etchings): string => `SELECT * FROM ${one.table} EXCEPT SELECT * FROM ${other.table}`;

/** Returns the lowest height whose etchings changed; infinity if none did. */
export async function lowestChange(before: Etchings, now: Etchings, store: Store): Promise<number> {
  const { lowest } = await store.row(
    `SELECT coalesce(min(block_height), -1) AS lowest
     FROM (SELECT block_height FROM (${rowsOnlyIn(now, before)}) UNION ALL SELECT block_height FROM (${rowsOnlyIn(before, now)}))`,
    { lowest: int },
  );
  return lowest < 0 ? Number.POSITIVE_INFINITY : lowest;
}

/**
 * Returns the first letters of the names of added etchings: of those that the protocol may have, only letters. Undefined
 * if an etching was lost or its row changed, so that others than these may have changed.
 */
export async function newFirstLetters(count: number, before: Etchings, now: Etchings, store: Store): Promise<string[] | undefined> {
  const { lost } = await store.row(`SELECT count(*) AS lost FROM (${rowsOnlyIn(before, now)})`, { lost: int });
  if (lost > 0) return undefined;
  const rows = await store.rows(
    `SELECT DISTINCT left(name, ${count}) AS letters FROM ${now.runes} WHERE id IN (SELECT id FROM (${rowsOnlyIn(now, before)})) AND regexp_full_match(name, '[A-Z]+')`,
    { letters: text },
  );
  return rows.map(({ letters }) => letters);
}
