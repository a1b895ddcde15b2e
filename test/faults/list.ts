/**
 * Faults for `npm run faults`: small changes of the program that a test must notice. Half are bugs that the program had,
 * or faults that no test once noticed. The other half are draws (draw.ts, seeds 1, 7 and 8, in their order). About 60
 * draws were discarded: changes of a text or a type, of a size or cache that changes no result, of files that need a
 * DOM (test/browser), and of checks behind which another check finds the same.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/cli.ts';
import { CORE_FAULTS } from './coreFaults.ts';
import { DATA_FAULTS } from './dataFaults.ts';
import { OUTPUT_FAULTS } from './outputFaults.ts';

export interface Fault {
  readonly name: string;
  readonly file: string;
  /** Text that the fault replaces by `to`. It occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
  /** Path of the test file that must fail, without `test/` and the ending. */
  readonly test: string;
  /** Only tests whose names match this pattern run. */
  readonly only?: string;
}

/** The rooms of the program, with the least number of their faults. `cli` has the faults of src/setup, too. */
export const ROOMS: Readonly<Record<string, number>> = {
  contract: 4,
  runes: 6,
  unspent: 6,
  rows: 4,
  pull: 4,
  input: 4,
  duckdb: 4,
  disk: 4,
  cli: 4,
  export: 4,
  engine: 6,
  lists: 6,
  format: 6,
  pages: 6,
  output: 4,
  serve: 4,
  site: 4,
  verify: 4,
};

/** Returns the room of a file below `src/`. */
export function roomOf(file: string): string {
  const [, folder = ''] = file.split('/');
  return folder === 'setup' ? 'cli' : folder;
}

/** Returns the paths of a room's files of code. */
export const filesOf = (room: string): string[] =>
  readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => `src/${path}`)
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && roomOf(path) === room);

/** Returns the changed text of the fault's file. Throws if the text to replace does not occur exactly once. */
export function changed({ name, file, from, to }: Fault): string {
  const [before, after, ...more] = readFileSync(join(ROOT, file), 'utf8').split(from);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} does not have the text of the fault "${name}" once`);
  return before + to + after;
}

export const FAULTS: readonly Fault[] = [...CORE_FAULTS, ...DATA_FAULTS, ...OUTPUT_FAULTS];
