/**
 * Figures of blocks and runes, and how they add up. Builds count in SQL (stats/counting.ts, stats/files.ts); this is for those who have records or files.
 */
import type { BlockFigures, RuneFigures } from '../contract/stats.ts';
import { OPERATIONS, type Operation } from '../pages/lists.ts';

export type Counts = Record<Operation, number>;

/** All that the documents of a build say follows from this. */
export interface Figures {
  /** Heights ascending. */
  readonly blocks: readonly BlockFigures[];
  /** The most active runes, see `mostActive`. */
  readonly runes: readonly RuneFigures[];
}

/** The counts of something that has them, in the order of OPERATIONS. */
export const countsOf = ({ etching, mint, burn, send, receive }: Readonly<Counts>): Counts => ({ etching, mint, burn, send, receive });

/** A block's figures and no more, with their keys in the order in which files have them. */
export const blockOf = ({ height, hash, timestamp, transactions, records, ...counts }: BlockFigures): BlockFigures => ({
  height,
  hash,
  timestamp,
  transactions,
  records,
  ...countsOf(counts),
});

/** The same of a rune. */
export const runeOf = ({ id, number, name, spaced_name, records, ...counts }: RuneFigures): RuneFigures => ({
  id,
  number,
  name,
  spaced_name,
  records,
  ...countsOf(counts),
});

/** Adds counts to `sum`. */
export function addCounts(sum: Counts, counts: Readonly<Counts>): void {
  for (const operation of OPERATIONS) sum[operation] += counts[operation];
}

export const noCounts = (): Counts => ({ etching: 0, mint: 0, burn: 0, send: 0, receive: 0 });

/** How many runes `stats.json` names. */
export const MOST_ACTIVE = 20;

/** The runes with the most records, of runes in any order; those with equally many in the order of their ids. */
export const mostActive = (runes: Iterable<RuneFigures>): RuneFigures[] =>
  [...runes].sort((a, b) => b.records - a.records || compareIds(keyOf(a.id), keyOf(b.id))).slice(0, MOST_ACTIVE);

/** Runes by id, and what was done with each. */
export class RuneTotals {
  readonly #runes = new Map<string, RuneFigures>();

  /** A rune with two names, which only wrong data has, gets the smaller one, as in SQL. */
  add(rune: Readonly<RuneFigures>): void {
    const sum = this.#runes.get(rune.id);
    if (sum === undefined) {
      this.#runes.set(rune.id, { ...rune });
      return;
    }
    sum.number = Math.min(sum.number, rune.number);
    sum.name = smallerText(sum.name, rune.name);
    sum.spaced_name = smallerText(sum.spaced_name, rune.spaced_name);
    sum.records += rune.records;
    addCounts(sum, rune);
  }

  /** In any order. */
  get all(): Iterable<RuneFigures> {
    return this.#runes.values();
  }

  /** In the order of their ids. */
  get sorted(): RuneFigures[] {
    return [...this.#runes.values()]
      .map((rune) => ({ rune, key: keyOf(rune.id) }))
      .sort((a, b) => compareIds(a.key, b.key))
      .map(({ rune }) => rune);
  }
}

/** What an id is ordered by. Its form is the only one of valid data, but any text can be an id. */
export const ID_FORM = '([0-9]{1,15}):([0-9]{1,15})';
const id = new RegExp(`^${ID_FORM}$`);

interface IdKey {
  /** Infinity for an id of another form. */
  readonly block: number;
  readonly tx: number;
  readonly id: string;
}

function keyOf(text: string): IdKey {
  const [, block, tx] = id.exec(text) ?? [];
  return { block: block === undefined ? Number.POSITIVE_INFINITY : Number(block), tx: Number(tx ?? 0), id: text };
}

/** By block and transaction as numbers, then by the bytes of the text. */
function compareIds(a: IdKey, b: IdKey): number {
  if (a.block !== b.block) return a.block < b.block ? -1 : 1;
  return a.tx - b.tx || compareText(a.id, b.id);
}

const smallerText = (a: string, b: string): string => (a === b || compareText(a, b) < 0 ? a : b);

/** In the order of their UTF-8 bytes, as databases compare them. */
const compareText = (a: string, b: string): number => (a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b)));
