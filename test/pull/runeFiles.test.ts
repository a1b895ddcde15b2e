/**
 * Writes the runes of random blocks to files, in random steps with failures and reorganisations. The files must equal
 * those that a single step writes.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { knownRunes } from '../../src/pull/node/readPulledRunes.ts';
import { checkNewestRunes, RuneFiles } from '../../src/pull/node/runeFiles.ts';
import { type CsvRows, writeParquet } from '../../src/pull/parquetFile.ts';
import { NEWEST_RUNES_FILE, RUNES_FILE, readRunes, WORK_FOLDER } from '../../src/pull/pulledFiles.ts';
import type { RuneRow } from '../../src/runes/ledgerRows.ts';
import { rowsOf, temporaryFolder } from '../support/build.ts';

const LIMIT = { runesTogether: 4 };

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '300MB', threads: 1, scratch: temporaryFolder() });
});
afterAll(() => store.close());

const runeOf = (number: number, height: number, fork: number): RuneRow => ({
  ...{ id: `${height}:${number}`, number, name: 'A'.repeat(13 + fork), spaced_name: 'A'.repeat(13 + fork), block_height: height },
  ...{ block_hash: 'ab'.repeat(32), tx_index: number, tx_id: 'cd'.repeat(32), divisibility: 0, premine: 0n, symbol: '¤', timestamp: 1 },
  ...{ terms_amount: null, terms_cap: null, terms_height_start: null, terms_height_end: null, terms_offset_start: null },
  ...{ terms_offset_end: null, turbo: false, cenotaph: false },
});

/** The runes of a chain, by block. The runes of a replaced block have other names. */
class Chain {
  readonly blocks: RuneRow[][] = [];
  #fork = 0;

  add(counts: readonly number[]): void {
    for (const count of counts) {
      const first = this.blocks.flat().length;
      this.blocks.push(Array.from({ length: count }, (_, i) => runeOf(first + i, this.blocks.length, this.#fork)));
    }
  }

  rewind(height: number): void {
    this.blocks.length = height + 1;
    this.#fork++;
  }

  get height(): number {
    return this.blocks.length - 1;
  }
}

/** Opens the rune files of a folder. The first `writes` writes of a file succeed, and all later ones fail. */
function open(folder: string, writes = Number.POSITIVE_INFINITY): RuneFiles {
  mkdirSync(join(folder, WORK_FOLDER), { recursive: true });
  let left = writes;
  const write = (rows: CsvRows) => (left-- > 0 ? writeParquet(folder, rows, store) : Promise.reject(new Error('no more files')));
  return new RuneFiles(folder, LIMIT, store, write);
}

function addAbove(files: RuneFiles, { blocks }: Chain, known: number): void {
  for (const row of blocks.slice(known + 1).flat()) files.add(row);
}

const filesIn = (folder: string) =>
  [RUNES_FILE, NEWEST_RUNES_FILE].map((name) => existsSync(join(folder, name)) && readFileSync(join(folder, name)).toString('base64'));

const numbersOf = (rows: readonly { readonly number: unknown }[]): number[] => rows.map(({ number }) => Number(number));
const numbersIn = async (from: string) =>
  numbersOf((await rowsOf(`SELECT number FROM (${from}) ORDER BY number`, store)) as { readonly number: unknown }[]);
const foundIn = async (folder: string) => (existsSync(join(folder, RUNES_FILE)) ? numbersIn(readRunes(folder)) : []);

interface Step {
  /** Number of runes in each new block. */
  readonly added: readonly number[];
  /** Number of the newest blocks that a reorganisation replaces before this step. Stops above the settled blocks. */
  readonly replaced: number;
  /** Number of further blocks that are settled after this step: no later step replaces them. */
  readonly settled: number;
  /** Number of files that the step writes before it fails and is repeated. Undefined if it does not fail. */
  readonly written: number | undefined;
  /** True if the process ends after the failure, and another process repeats the step. */
  readonly isKilled: boolean;
}

const steps = fc.array(
  fc.record<Step>({
    added: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 4 }),
    replaced: fc.constantFrom(0, 0, 1, 3),
    settled: fc.integer({ min: 0, max: 5 }),
    written: fc.constantFrom(undefined, undefined, 0, 1, 2),
    isKilled: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

const step = (added: readonly number[], settled: number, written?: number): Step => ({
  added,
  replaced: 0,
  settled,
  written,
  isKilled: true,
});
/** The second step moves runes from the table to a second file, and fails after one of the two files is written. */
const MANY_AT_ONCE = [step([2, 2, 2, 2], 0), step([0], 3, 1)];
/** The second step has no new runes, but settles the last ones. */
const NO_NEW_RUNES = [step([2, 2, 2, 2], 3), step([0], 2)];

it('writes the same files in any steps, and loses no rune at any moment', { timeout: 120_000 }, async () => {
  let apart = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const [folder, straight] = [temporaryFolder(), temporaryFolder()];
      const chain = new Chain();
      let [known, settled] = [-1, -1];
      let files = open(folder);
      for (const { added, replaced, settled: more, written, isKilled } of all) {
        const fork = Math.max(settled, known - replaced);
        if (fork < known) {
          chain.rewind(fork);
          files.hasOld = true;
          known = fork;
        }
        chain.add(added);
        settled = Math.min(chain.height, settled + more);
        if (written !== undefined) {
          const failing = open(folder, written);
          failing.hasOld = true;
          addAbove(failing, chain, known);
          await failing.putInPlace(known, settled).catch(() => undefined);
          const left = await foundIn(folder);
          expect(left).toEqual(expect.arrayContaining(numbersOf(chain.blocks.slice(0, known + 1).flat())));
          checkNewestRunes(left.length, folder, LIMIT);
          expect(await knownRunes(folder, { runesPerText: 100 }, store)).toHaveLength(left.length);
          if (isKilled) files = open(folder);
          else files.discard();
          files.hasOld = true;
        }
        addAbove(files, chain, known);
        await files.putInPlace(known, settled);
        known = chain.height;
      }
      const once = open(straight);
      addAbove(once, chain, -1);
      await once.putInPlace(-1, settled);
      expect(filesIn(folder)).toEqual(filesIn(straight));
      const rows = chain.blocks.flat();
      const below = rows.filter((row) => row.block_height <= settled).length;
      const inTable = below > LIMIT.runesTogether ? below : rows.length;
      expect(await numbersIn(`FROM '${join(folder, RUNES_FILE)}'`)).toEqual(numbersOf(rows.slice(0, inTable)));
      expect(await foundIn(folder)).toEqual(numbersOf(rows));
      const newest = join(folder, NEWEST_RUNES_FILE);
      expect(existsSync(newest)).toBe(inTable > LIMIT.runesTogether);
      if (existsSync(newest)) {
        rmSync(newest);
        const left = await foundIn(folder);
        expect(() => checkNewestRunes(left.length, folder, LIMIT)).toThrow(`${newest} is missing`);
      }
      if (below > LIMIT.runesTogether && below < rows.length) apart++;
    }),
    { numRuns: 30, examples: [[MANY_AT_ONCE], [NO_NEW_RUNES]] },
  );
  expect(apart).toBeGreaterThan(0);
});
