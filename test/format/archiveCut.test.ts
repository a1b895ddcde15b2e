/** Tests how the blocks of an archive are divided into segments, and which heights the levels of its tables have. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planLevels } from '../../src/engine/archive/listedRecords.ts';
import { type Cut, cut, type Piece } from '../../src/format/cutSegments.ts';
import { type LevelRange, lastRanked, levelRanges } from '../../src/format/levels.ts';
import { HIGHEST_HEIGHT } from '../../src/format/root.ts';
import { LIMITS } from '../../src/limits.ts';

const SIZE = 100;
const LENGTH = 32;
const FORM = { objectSize: SIZE, segmentBlocks: LENGTH };

/** Sizes of the blocks of a chain, by height. Some heights have no block. */
type Chain = ReadonlyMap<number, number>;

const bytes = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 12 }) }, fc.integer({ min: 1, max: SIZE * 1.5 }));
const gap = fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 70 }));
const chains = fc
  .tuple(fc.constantFrom(0, 1, 840_000, 839_990, HIGHEST_HEIGHT - 8000), fc.array(fc.tuple(gap, bytes), { minLength: 1, maxLength: 100 }))
  .map(([start, steps]): Chain => {
    let height = start - 1;
    return new Map(
      steps.map(([step, size]) => {
        height += step;
        return [height, size];
      }),
    );
  });

const tipOf = (chain: Chain) => Math.max(-1, ...chain.keys());
const single = ([height, size]: readonly [number, number]): Piece => ({ first: height, last: height, bytes: size });
const cutChain = (chain: Chain) => cut([...chain].sort(([a], [b]) => a - b).map(single), tipOf(chain), FORM);
const bytesOf = ({ pieces }: Cut<Piece>) => pieces.reduce((sum, piece) => sum + piece.bytes, 0);

/** Returns the range of each segment, with the heights of its blocks. */
const shapeOf = (cuts: readonly Cut<Piece>[], chain: Chain) =>
  cuts.map(({ first, last, pieces }) => [
    `${first}-${last}`,
    pieces.flatMap((piece) => [...chain.keys()].filter((height) => height >= piece.first && height <= piece.last)),
  ]);

describe('a division into segments', () => {
  it('puts each block into one segment, whose range is the largest aligned one that ends at or below the tip and fits', () => {
    fc.assert(
      fc.property(chains, (chain) => {
        const cuts = cutChain(chain);
        const tip = tipOf(chain);
        expect(cuts.flatMap(({ pieces }) => pieces.map(({ first }) => first))).toEqual([...chain.keys()]);
        for (const [i, one] of cuts.entries()) {
          const { first, last, pieces } = one;
          const length = last - first + 1;
          expect([Number.isInteger(Math.log2(length)), first % length]).toEqual([true, 0]);
          expect(first).toBeGreaterThan(cuts[i - 1]?.last ?? -1);
          expect(last).toBeLessThanOrEqual(tip);
          if (pieces.length > 1) expect(bytesOf(one)).toBeLessThanOrEqual(SIZE);
          // The range must be as long as possible: a range twice as long would be too large, or would end above the tip.
          const start = first - (first % (length * 2));
          const end = start + length * 2 - 1;
          const inside = [...chain].filter(([height]) => height >= start && height <= end);
          const isTooLarge = inside.reduce((sum, [, size]) => sum + size, 0) > SIZE;
          expect(length).toBeLessThanOrEqual(LENGTH);
          expect(isTooLarge || end > tip || length === LENGTH).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  const change = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('grow' as const), steps: fc.array(fc.tuple(gap, bytes), { minLength: 1, maxLength: 5 }) }),
    },
    fc.record({ kind: fc.constant('reorganise' as const), depth: fc.integer({ min: 1, max: 12 }), size: bytes }),
    fc.record({ kind: fc.constant('go back' as const), depth: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ kind: fc.constant('remove' as const), at: fc.nat() }),
    fc.record({ kind: fc.constant('insert' as const), at: fc.nat(), size: bytes }),
  );

  it('of earlier segments equals the division of single blocks, after any history', () => {
    fc.assert(
      fc.property(chains, fc.array(change, { minLength: 1, maxLength: 8 }), (start, changes) => {
        const chain = new Map(start);
        let cuts = cutChain(chain);
        for (const one of changes) {
          const changed = new Set<number>();
          const heights = [...chain.keys()].sort((a, b) => a - b);
          const set = (height: number, size: number | undefined) => {
            changed.add(height);
            if (size === undefined) chain.delete(height);
            else chain.set(height, size);
          };
          if (one.kind === 'grow') {
            let height = tipOf(chain);
            for (const [step, size] of one.steps) {
              height += step;
              set(height, size);
            }
          } else if (one.kind === 'reorganise') for (const height of heights.slice(-one.depth)) set(height, one.size);
          else if (one.kind === 'go back') for (const height of heights.slice(-one.depth)) set(height, undefined);
          else if (one.kind === 'remove') set(heights[one.at % heights.length] ?? 0, undefined);
          else set((heights[0] ?? 0) + (one.at % 200), one.size);
          const tip = tipOf(chain);
          // Segments without changed blocks stay as they are. The other segments are split into single blocks.
          const pieces = [...changed].flatMap((height) => (chain.has(height) ? [single([height, chain.get(height) ?? 0])] : []));
          for (const old of cuts) {
            const isChanged = [...changed].some((height) => height >= old.first && height <= old.last);
            if (old.last <= tip && !isChanged) pieces.push({ first: old.first, last: old.last, bytes: bytesOf(old) });
            else {
              for (const [height, size] of chain)
                if (height >= old.first && height <= old.last && !changed.has(height)) pieces.push(single([height, size]));
            }
          }
          pieces.sort((a, b) => a.first - b.first);
          const sorted = new Map([...chain].sort(([a], [b]) => a - b));
          cuts = cut(pieces, tip, FORM);
          expect(shapeOf(cuts, sorted)).toEqual(shapeOf(cutChain(sorted), sorted));
        }
      }),
      { numRuns: 400 },
    );
  });

  it('writes few segments for a new block, and each block only a few times', () => {
    const first = 840_000;
    const chain = new Map<number, number>();
    let known = new Set<string>();
    let written = 0;
    for (let height = first; height < first + 1000; height += 1) {
      chain.set(height, 1);
      const cuts = cutChain(chain);
      const fresh = cuts.filter((one) => !known.has(`${one.first}-${one.last}`));
      expect(fresh.length).toBe(1);
      written += bytesOf(fresh[0] as Cut<Piece>);
      known = new Set(cuts.map((one) => `${one.first}-${one.last}`));
    }
    // While the chain grows, a block is at most in six segments, one after another, which have up to 32 blocks. So its pages are written at
    // most six times.
    expect(written / 1000).toBeLessThanOrEqual(6);
  });

  it('has no segments without blocks', () => expect(cut([], -1, FORM)).toEqual([]));
});

describe('the levels of a table', () => {
  const tips = fc.oneof(fc.integer({ min: -1, max: 9000 }), fc.integer({ min: 800_000, max: 900_000 }), fc.constant(HIGHEST_HEIGHT));

  it('cover each height up to the tip once, and the lower levels have none of the newest eight blocks', () => {
    fc.assert(
      fc.property(tips, (tip) => {
        const ranges = levelRanges(tip, LIMITS.tableLevels);
        expect(ranges.length).toBeLessThanOrEqual(3);
        let next = 0;
        for (const [i, { first, last }] of ranges.entries()) {
          const isSettled = i < ranges.length - 1;
          expect([first, last >= first, !isSettled || (last <= tip - 8 && (last + 1) % 64 === 0)]).toEqual([next, true, true]);
          next = last + 1;
        }
        expect(next).toBe(tip + 1);
      }),
      { numRuns: 1000 },
    );
  });

  it('of a moving range of blocks cover each height once, and few levels change when it moves by a block', () => {
    fc.assert(
      fc.property(
        tips,
        fc.integer({ min: 0, max: 20_000 }).map((blocks) => (blocks % 2 === 0 ? blocks : blocks % 1200)),
        (tip, blocks) => {
          const lowest = Math.max(tip - blocks, 0);
          const ranges = levelRanges(tip, LIMITS.listLevels, lowest);
          expect(ranges.length).toBeLessThanOrEqual(7);
          let next = lowest;
          for (const { first, last } of ranges) {
            expect([first, last >= first]).toEqual([next, true]);
            next = last + 1;
          }
          expect(next).toBe(tip + 1);
        },
      ),
      { numRuns: 1000 },
    );
    const nameOf = ({ first, last }: LevelRange) => `${first}-${last}`;
    const begin = 840_000;
    let [changed, most] = [0, 0];
    let before = new Set<string>();
    for (let tip = begin; tip < begin + 1008; tip += 1) {
      const ranges = levelRanges(tip, LIMITS.listLevels, tip - 999);
      if (tip > begin) {
        const blocks = ranges.filter((range) => !before.has(nameOf(range))).map(({ first, last }) => last - first + 1);
        changed += blocks.reduce((sum, length) => sum + length, 0);
        if (blocks.some((length) => length > 144)) most += 1;
      }
      before = new Set(ranges.map(nameOf));
    }
    // In these 1,007 blocks, both ends of the range pass a multiple of 144 seven times, so more than 144 blocks are written again 14 times.
    expect([most, Math.round(changed / 1007)]).toEqual([14, 42]);
  });

  it('have ranks, except the newest two', () => {
    expect([99, 100, 101].map((tip) => lastRanked(tip, { steps: [20, 5], unsettled: 2 }))).toEqual([79, 79, 99]);
    expect([0, 100].map((tip) => lastRanked(tip, { steps: [20], unsettled: 2 }))).toEqual([-1, -1]);
  });

  it('change with every block, every 64 blocks and every 4,096 blocks', () => {
    const [lowest, middle] = [new Set<number>(), new Set<string>()];
    const [begin, blocks] = [205 * 4096 + 7, 3 * 4096];
    let longest = 0;
    for (let tip = begin; tip < begin + blocks; tip += 1) {
      const [bottom, ...upper] = levelRanges(tip, LIMITS.tableLevels);
      lowest.add((bottom?.last ?? 0) + 1);
      for (const { first, last } of upper.slice(0, -1)) middle.add(`${first}-${last}`);
      longest = Math.max(longest, tip - (upper.at(-1)?.first ?? 0) + 1);
    }
    expect([...lowest]).toEqual([205 * 4096, 206 * 4096, 207 * 4096]);
    // Immediately after the lowest level has grown, there is no level between the lowest and the newest level.
    expect(middle.size).toBe(blocks / 64 - 3);
    // Every new block writes the newest level again, so this level must be small.
    expect(longest).toBe(64 + 8 - 1);
  });
});

describe('the plan of levels', () => {
  const steps = fc.constantFrom(LIMITS.listLevels, { steps: [12, 4, 2], unsettled: 2 }, { steps: [8, 2], unsettled: 0 });

  it('keeps the lowest levels that have not changed, and makes all above them anew', () => {
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: -1, max: 60 }),
        fc.integer({ min: -1, max: 60 }),
        fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined }),
        fc.integer({ min: 1, max: 100 }),
        (listLevels, before, tip, height, scale) => {
          // `scale` makes the tips near to each other or far apart, even compared with the level lengths of mainnet.
          const [from, to] = [before * scale, tip * scale];
          // If the chain becomes shorter, the block above the new tip counts as changed, because the blocks there are removed.
          const changed = Math.min(
            height === undefined ? Number.POSITIVE_INFINITY : height * scale,
            to < from ? to + 1 : Number.POSITIVE_INFINITY,
          );
          const replaced = new Set(Number.isFinite(changed) ? [changed] : []);
          const blocks = { spooled: new Map(), replaced, tip: to, objectSize: 1, limits: { ...LIMITS, listLevels } };
          const plans = planLevels(blocks, { tip: from, lowest: undefined }, changed);
          const kept = plans.filter(({ isKept }) => isKept);
          expect(plans.slice(0, kept.length)).toEqual(kept);
          const ranges = levelRanges(from, listLevels).map(({ first, last }) => ({ first, last, isKept: true }));
          expect(ranges).toEqual(expect.arrayContaining(kept));
          for (const { last } of kept) expect(last).toBeLessThan(changed);
        },
      ),
      { numRuns: 3000 },
    );
  });
});
