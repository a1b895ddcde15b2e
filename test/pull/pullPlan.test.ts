/**
 * Tests plans of pulls, for any chain, any wanted range and any pulled files. After a plan is executed, all wanted
 * blocks have been pulled, and none was fetched twice.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Heights, heightsOf } from '../../src/pull/heightRange.ts';
import { type PlanInput, plan } from '../../src/pull/planBlocks.ts';
import { parseWanted } from '../../src/pull/pullCommand.ts';
import { ledgerFile, type PulledFile } from '../../src/pull/pulledFiles.ts';

const fileOf = ({ first, last }: Heights): PulledFile => ({ path: ledgerFile(first, last), first, last });

/**
 * Executes a plan, and returns the files afterwards. A unit of the plan (a range of blocks to fetch) becomes a file,
 * and replaces the files within its range.
 */
function carryOut(files: readonly PulledFile[], { units, outgrown }: ReturnType<typeof plan>): PulledFile[] {
  const kept = files.filter((file) => !outgrown.includes(file) && !units.some((u) => u.first <= file.first && file.last <= u.last));
  return [...kept, ...units.map((unit) => fileOf(unit))].sort((a, b) => a.first - b.first || a.last - b.last);
}

const wishes = fc.oneof(
  fc.record({
    from: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
    to: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
  }),
  fc.record({ from: fc.record({ last: fc.integer({ min: 1, max: 300 }) }), to: fc.constant(undefined) }),
);

/**
 * A sequence of pulls of a growing chain. Each pull has another wanted range.
 */
const histories = fc.array(
  fc.record({
    wanted: wishes,
    growth: fc.integer({ min: 0, max: 60 }),
    confirmations: fc.integer({ min: 0, max: 8 }),
  }),
  { minLength: 1, maxLength: 5 },
);

describe('a plan', () => {
  it('fetches every wanted and missing block once, in files that do not overlap', () => {
    fc.assert(
      fc.property(histories, fc.integer({ min: 0, max: 120 }), (steps, first) => {
        let files: PulledFile[] = [];
        let last = first + 5;
        for (const { wanted, growth, confirmations } of steps) {
          last += growth;
          const input = (): PlanInput => ({
            wanted,
            source: { first, last, has: () => true },
            confirmations,
            files,
            stale: new Set(),
          });
          const made = plan(input());
          const fetched = made.units.flatMap(heightsOf);
          expect(new Set(fetched).size).toBe(fetched.length);
          const before = new Set(files.flatMap(heightsOf));
          for (const { first: a, last: b } of made.units) {
            // A unit has blocks below the wanted range only if it replaces a file that has these blocks.
            expect(heightsOf({ first: a, last: made.range.first - 1 }).filter((height) => !before.has(height))).toEqual([]);
            expect(b).toBeLessThanOrEqual(Math.max(made.range.last, last));
            // Only settled blocks (at least `confirmations` below the last block) share a file.
            if (a !== b) expect(b).toBeLessThanOrEqual(last - confirmations);
          }
          files = carryOut(files, made);
          const now = files.flatMap(heightsOf);
          expect(new Set(now).size, 'no block is in two files').toBe(now.length);
          expect(heightsOf(made.range).filter((height) => !now.includes(height))).toEqual([]);
          // No pulled block is lost, and a second plan for the same range has nothing to do.
          if (typeof wanted.from !== 'object') for (const height of before) expect(now).toContain(height);
          expect(plan(input())).toMatchObject({ units: [], outgrown: [] });
        }
      }),
      { numRuns: 300 },
    );
  });

  it('fetches stale blocks again, and blocks that shared a file with them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 119 }), { minLength: 1 }), (heights) => {
        const files = [fileOf({ first: 0, last: 99 }), ...heightsOf({ first: 100, last: 119 }).map((h) => fileOf({ first: h, last: h }))];
        const source = { first: 0, last: 119, has: () => true };
        const { units } = plan({ wanted: { from: undefined, to: undefined }, source, confirmations: 6, files, stale: new Set(heights) });
        const fetched = new Set(units.flatMap(heightsOf));
        const shared = heights.some((height) => height < 100) ? heightsOf({ first: 0, last: 99 }) : [];
        for (const height of [...heights, ...shared]) expect(fetched.has(height)).toBe(true);
      }),
    );
  });
});

describe('--blocks', () => {
  it.each([
    ['840000..', { from: 840_000, to: undefined }],
    ['840000..849999', { from: 840_000, to: 849_999 }],
    ['..849999', { from: undefined, to: 849_999 }],
    ['-2016..', { from: { last: 2016 }, to: undefined }],
    [undefined, { from: undefined, to: undefined }],
  ])('%s', (text, wanted) => expect(parseWanted(text)).toEqual(wanted));

  it.each(['', '..', '840000', '5..4', '-5..9', '-0..', '..-5', 'a..b', '1.5..2', '1e3..', '9'.repeat(17).concat('..')])(
    'refuses %j',
    (text) => expect(() => parseWanted(text)).toThrow(/must be heights/),
  );
});
