/** Sources of records: ranges of blocks that were read, and the rules by which the rows of these blocks were made. */
import { z } from 'zod';
import { isNetwork, NETWORKS } from '../runes/networks.ts';

/** Rules by which rows were made, by this program (`ord`) or by others. The schema below describes them. */
const RULES = ['ord', 'bitcoin-indexer', 'server'] as const;
type Rules = (typeof RULES)[number];

/**
 * Name of a network, often from a stranger. Any other text could make a signed note that clients refuse. Not an enum, which would change
 * `openapi.json`.
 */
export const networkName = z
  .string()
  .refine((name): boolean => isNetwork(name), { error: `must be one of ${Object.keys(NETWORKS).join(', ')}` });

const height = z.int().min(0);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const sources = z.array(
  z.strictObject({
    rules: z
      .enum(RULES)
      .describe(
        '`ord`: from a Bitcoin Core node. `bitcoin-indexer`: from a database of bitcoin-indexer. `server`: from a mirror or server of this API that does not name its rules.',
      ),
    blocks: z
      .array(z.tuple([height, height]))
      .min(1)
      .describe('Ranges of heights that were read, ascending: first and last, both included. Some may have no activity.'),
  }),
);
export type Sources = z.infer<typeof sources>;

/** Last block that was read. It may have no activity. */
export const lastRead = z.strictObject({ height: height.describe('Height of the block.'), hash: hash.describe('Hash of this block.') });
export type LastRead = z.infer<typeof lastRead>;

/**
 * What an index of rows (rowsSchemas.ts) says about the blocks that were read. The optional fields depend on the source of the pull:
 * - `tip`: the last block. Only if the data comes from a node, directly or through a mirror.
 * - `network`: the network's name in Bitcoin Core. Only after a pull from a node.
 * - `ends`: hashes of the newest blocks. Only after a pull from a node. If such a block has no records, no other file has its hash.
 */
export const blocksFile = z.strictObject({
  sources,
  tip: lastRead.optional(),
  network: networkName.optional(),
  ends: z.array(lastRead).optional(),
});

/** Range of heights. `first` and `last` are included. */
type Run = readonly [first: number, last: number];

/**
 * Joins lists of sources, which are ranges of heights with the rules of their rows. A height in several lists gets the rules of the first
 * of them. Drops heights outside the ranges `within`.
 */
export function joinSources(lists: readonly Sources[], within: readonly Run[]): Sources {
  const joined = new Map<Rules, Run[]>();
  let free: Run[] = joinRuns(within);
  for (const { rules, blocks } of lists.flat()) {
    for (const run of blocks) {
      const taken = free.flatMap((other) => intersection(other, run));
      joined.set(rules, [...(joined.get(rules) ?? []), ...taken]);
      free = free.flatMap((other) => without(other, run));
    }
  }
  return RULES.flatMap((rules) => {
    const blocks = joinRuns(joined.get(rules) ?? []);
    return blocks.length === 0 ? [] : [{ rules, blocks }];
  });
}

/**
 * Removes blocks of a node above `tip`, the last block of a build. Such blocks exist if the range of `--blocks` ends at a block without
 * records: the input lacks the hash of this block, so the last block of the build is a lower one. Removes no block if `tip` is undefined.
 */
export const sourcesUpTo = (tip: number | undefined, list: Sources): Sources => [
  ...joinSources([list.filter(({ rules }) => rules === 'ord')], [[0, tip ?? Number.MAX_SAFE_INTEGER]]),
  ...list.filter(({ rules }) => rules !== 'ord'),
];

const isRun = ([first, last]: Run): boolean => first <= last;
const intersection = ([a, b]: Run, [c, d]: Run): Run[] => [[Math.max(a, c), Math.min(b, d)] as const].filter(isRun);
const without = ([a, b]: Run, [c, d]: Run): Run[] => [[a, Math.min(b, c - 1)] as const, [Math.max(a, d + 1), b] as const].filter(isRun);

/** Sorts ranges of heights, and joins ranges that overlap or follow each other without a gap. */
export function joinRuns(runs: readonly Run[]): [number, number][] {
  const joined: [number, number][] = [];
  for (const [first, last] of [...runs].sort((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

const NAMES: Readonly<Record<Rules, string>> = {
  ord: "Bitcoin Core by ord's rules",
  'bitcoin-indexer': 'a database of bitcoin-indexer',
  server: 'a mirror or server that does not name its rules',
};

export const describeSources = (list: Sources): string =>
  list.map(({ rules, blocks }) => `${NAMES[rules]} (blocks ${blocks.map(([first, last]) => `${first}..${last}`).join(', ')})`).join('; ');
