/**
 * The requests of the load benchmark: which kinds there are, how often each is asked, and the same ones every time.
 */
import type { DataFacts } from './data.ts';

/** The page sizes of the builds that are measured: those of the service that used to answer. */
export const PAGE_SIZES = [20, 60] as const;
const [DEFAULT_LIMIT, MAXIMUM_LIMIT] = PAGE_SIZES;

/** `canonical` has only windows that are pages, which any file server can answer; `full` has all that clients ask. */
export const MIXES = ['transactions', 'canonical', 'full'] as const;
export type Mix = (typeof MIXES)[number];

/** How many of a hundred requests are of a kind, and the mixes that have it. */
const KINDS = [
  { name: 'first page of a transaction', weight: 70, mixes: ['transactions', 'canonical', 'full'], draw: firstOfTransaction },
  { name: 'first page of a block', weight: 10, mixes: ['canonical', 'full'], draw: firstOfBlock },
  { name: 'another page', weight: 10, mixes: ['canonical', 'full'], draw: anotherPage },
  { name: 'window that is no page', weight: 5, mixes: ['full'], draw: unaligned },
  { name: 'unknown id', weight: 5, mixes: ['full'], draw: unknownId },
] as const;

/** The targets of each mix in the order in which they are asked; the full one has `count`, and the others are those of them that they allow. */
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

/** What a mix is made of, for people. */
export const describeMix = (mix: Mix): string =>
  KINDS.filter(({ mixes }) => (mixes as readonly Mix[]).includes(mix))
    .map(({ name, weight }) => `${weight} ${name}`)
    .join(', ');

type Random = () => number;

/** Numbers from 0 to 1 that follow from the seed (mulberry32). */
function randomNumbers(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const below = (limit: number, random: Random): number => Math.floor(random() * limit);

function oneOf<T>(list: readonly T[], random: Random): T {
  const item = list[below(list.length, random)];
  if (item === undefined) throw new Error('the data has none of what the mix asks for');
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

/** A page of either size, of a block or of a transaction that has more than its first. */
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

/** A window of a block that is no page; some are past its end. */
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

/** Lists longer than this have more pages than the first. */
export const FIRST_PAGE = DEFAULT_LIMIT;
