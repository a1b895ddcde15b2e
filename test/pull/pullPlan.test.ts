/**
 * Tests plans of pulls, for any chain, any wanted range and any pulled files. After a plan is executed, all wanted
 * blocks have been pulled, and none was fetched twice.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Heights, heightsOf } from '../../src/pull/heightRange.ts';
import { type PlanInput, plan } from '../../src/pull/planBlocks.ts';
import { parseWanted } from '../../src/pull/pullCommand.ts';
import { blockFile, ledgerFile, type PulledFile } from '../../src/pull/pulledFiles.ts';

const fileOf = ({ first, last }: Heights, isLedger: boolean): PulledFile =>
  isLedger
    ? { path: ledgerFile(first, last), first, last, digest: undefined }
    : { path: blockFile(first, 'ab'.repeat(32)), first, last, digest: 'ab'.repeat(8) };

/**
 * Executes a plan, and returns the files afterwards. A unit of the plan (a range of blocks to fetch) becomes a file,
 * and replaces the files within its range.
 */
function carryOut(files: readonly PulledFile[], { units, outgrown }: ReturnType<typeof plan>, isLedger: boolean): PulledFile[] {
  const kept = files.filter((file) => !outgrown.includes(file) && !units.some((u) => u.first <= file.first && file.last <= u.last));
  return [...kept, ...units.map((unit) => fileOf(unit, isLedger))].sort((a, b) => a.first - b.first || a.last - b.last);
}

const wishes = fc.oneof(
  fc.record({
    from: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
    to: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
  }),
  fc.record({ from: fc.record({ last: fc.integer({ min: 1, max: 300 }) }), to: fc.constant(undefined) }),
);

/**
 * A sequence of pulls of a growing chain. Each pull has another wanted range, and some come from another kind of
 * source.
 */
const histories = fc.array(
  fc.record({
    wanted: wishes,
    growth: fc.integer({ min: 0, max: 60 }),
    perFile: fc.constantFrom(1, 20),
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
        for (const { wanted, growth, perFile, confirmations } of steps) {
          last += growth;
          const input = (): PlanInput => ({
            wanted,
            source: { first, begin: first, last, has: () => true },
            confirmations,
            perFile,
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
          if (perFile === 1) for (const height of fetched) expect(before.has(height)).toBe(false);
          files = carryOut(files, made, perFile > 1);
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
      fc.property(fc.uniqueArray(fc.integer({ min: 80, max: 119 }), { minLength: 1 }), fc.constantFrom(1, 20), (heights, perFile) => {
        const files = [
          fileOf({ first: 80, last: 99 }, true),
          ...heightsOf({ first: 100, last: 119 }).map((h) => fileOf({ first: h, last: h }, false)),
        ];
        const source = { first: 0, begin: 0, last: 119, has: () => true };
        const wanted = { from: undefined, to: undefined };
        const { units } = plan({ wanted, source, confirmations: 6, perFile, files, stale: new Set(heights) });
        const fetched = new Set(units.flatMap(heightsOf));
        for (const height of heights) expect(fetched.has(height)).toBe(true);
        if (heights.some((height) => height < 100))
          for (const height of heightsOf({ first: 80, last: 99 })) expect(fetched.has(height)).toBe(true);
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
