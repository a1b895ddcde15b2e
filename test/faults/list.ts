/**
 * Faults for `npm run faults`: small changes of the program that a test must notice (faults.txt). Half are bugs that the program had, or
 * faults that no test once noticed. The other half are draws of a line and of a change of it. About 60 draws were discarded: changes of a
 * text or a type, of a size or cache that changes no result, of files that need a DOM (test/browser), and of checks behind which another
 * check finds the same.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/cli.ts';

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

/** Returns the changed text of the fault's file. Throws if the text to replace does not occur exactly once. */
export function changed({ name, file, from, to }: Fault): string {
  const [before, after, ...more] = readFileSync(join(ROOT, file), 'utf8').split(from);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} does not have the text of the fault "${name}" once`);
  return before + to + after;
}

/**
 * A fault of faults.txt begins with `NAME | FILE | TEST`, and perhaps ` | ONLY`. Then come the lines to replace, each after a `-`, and the
 * new ones, each after a `+`.
 */
const ENTRY = /^([^-+].*)\n((?:-.*\n)+)((?:\+.*\n)+)/gm;
const withoutMarks = (lines: string): string => lines.replace(/^./gm, '').replace(/\n$/, '');

const text = readFileSync(join(ROOT, 'test/faults/faults.txt'), 'utf8');
const rest = text.replace(ENTRY, '');
if (rest !== '') throw new Error(`test/faults/faults.txt has lines that are no fault: ${rest.slice(0, 200)}`);

export const FAULTS: readonly Fault[] = [...text.matchAll(ENTRY)].map(([, head = '', from = '', to = '']) => {
  const [name = '', file = '', test = '', only] = head.split(' | ');
  return { name, file, from: withoutMarks(from), to: withoutMarks(to), test, ...(only === undefined ? {} : { only }) };
});
