/** Defines the requests of the load benchmark: their kinds, and the share of each kind. Every run draws the same requests. */
import { randomNumbers } from '../random.ts';

interface Transaction {
  readonly id: string;
  readonly total: number;
}

/** The generated records, as far as requests need them. `total` is the number of records of a list. */
export interface DataFacts {
  readonly records: number;
  readonly blocks: readonly { readonly height: number; readonly total: number }[];
  readonly transactions: readonly Transaction[];
  /** Transactions with more than one page. */
  readonly longTransactions: readonly Transaction[];
}

/** Page sizes of the builds: the default and the maximum limit of Hiro's server. */
export const PAGE_SIZES = [20, 60] as const;
const [DEFAULT_LIMIT, MAXIMUM_LIMIT] = PAGE_SIZES;

/**
 * The mixes of requests. `transactions` and `canonical` have only windows that are pages, which any file server can answer. `full` has all
 * kinds of requests.
 */
export const MIXES = ['transactions', 'canonical', 'full'] as const;
export type Mix = (typeof MIXES)[number];

/** Kinds of requests. `weight` is the share of a kind in percent of `full`. `mixes` are the mixes that have this kind. */
const KINDS = [
  { name: 'first page of a transaction', weight: 70, mixes: ['transactions', 'canonical', 'full'], draw: firstOfTransaction },
  { name: 'first page of a block', weight: 10, mixes: ['canonical', 'full'], draw: firstOfBlock },
  { name: 'another page', weight: 10, mixes: ['canonical', 'full'], draw: anotherPage },
  { name: 'window that is not a page', weight: 5, mixes: ['full'], draw: unaligned },
  { name: 'unknown id', weight: 5, mixes: ['full'], draw: unknownId },
] as const;

/**
 * Draws the targets of each mix, in the order of the requests. `full` has `count` targets. The other mixes have the same targets, without
 * the kinds of requests that they lack.
 */
export function drawTargets(facts: DataFacts, count: number): Readonly<Record<Mix, readonly string[]>> {
  const random = randomNumbers(840_000);
  const drawn = Array.from({ length: count }, () => {
    const kind = kindAt(random() * 100);
    return { mixes: kind.mixes as readonly Mix[], target: kind.draw(facts, random) };
  });
  const of = (mix: Mix) => drawn.filter(({ mixes }) => mixes.includes(mix)).map(({ target }) => target);
  return { transactions: of('transactions'), canonical: of('canonical'), full: of('full') };
}

function kindAt(percent: number): (typeof KINDS)[number] {
  let end = 0;
  for (const kind of KINDS) {
    end += kind.weight;
    if (percent < end) return kind;
  }
  return KINDS[0];
}

/** Describes the kinds of requests in a mix, with their weights. */
export const describeMix = (mix: Mix): string =>
  KINDS.filter(({ mixes }) => (mixes as readonly Mix[]).includes(mix))
    .map(({ name, weight }) => `${weight} ${name}`)
    .join(', ');

type Random = () => number;

const below = (limit: number, random: Random): number => Math.floor(random() * limit);

function oneOf<T>(list: readonly T[], random: Random): T {
  const item = list[below(list.length, random)];
  if (item === undefined) throw new Error('the generated data has no list of the kind to request');
  return item;
}

const transaction = (id: string, query = ''): string => `/runes/v1/transactions/${id}/activity${query}`;
const block = (height: number, query = ''): string => `/runes/v1/blocks/${height}/activity${query}`;
const windowQuery = (limit: number, offset: number): string => `?limit=${limit}&offset=${offset}`;

function firstOfTransaction({ transactions }: DataFacts, random: Random): string {
  return transaction(oneOf(transactions, random).id);
}

function firstOfBlock({ blocks }: DataFacts, random: Random): string {
  return block(oneOf(blocks, random).height);
}

/** Draws a random page of a block, or of a transaction with several pages. */
function anotherPage({ blocks, longTransactions }: DataFacts, random: Random): string {
  const limit = oneOf(PAGE_SIZES, random);
  const pageOf = (total: number): string => windowQuery(limit, limit * below(Math.ceil(total / limit), random));
  if (random() < 0.5) {
    const { height, total } = oneOf(blocks, random);
    return block(height, pageOf(total));
  }
  const { id, total } = oneOf(longTransactions, random);
  return transaction(id, pageOf(total));
}

/** Draws a window of a block that is not a page. Some windows are past the end. */
function unaligned({ blocks }: DataFacts, random: Random): string {
  const { height, total } = oneOf(blocks, random);
  const limit = 1 + below(MAXIMUM_LIMIT, random);
  const offset = below(total + MAXIMUM_LIMIT, random);
  const isPage = PAGE_SIZES.some((size) => size === limit) && offset % limit === 0;
  return block(height, windowQuery(limit, isPage ? offset + 1 : offset));
}

function unknownId({ blocks }: DataFacts, random: Random): string {
  if (random() < 0.2) return block((blocks.at(-1)?.height ?? 0) + 1 + below(1000, random));
  return transaction(Array.from({ length: 64 }, () => below(16, random).toString(16)).join(''));
}

/** Number of records on a first page. Longer lists have several pages. */
export const FIRST_PAGE = DEFAULT_LIMIT;
