/**
 * Verifies sorted tables. The entries of a level may not fit into memory, so this module compares two sums of
 * fingerprints: one of the stored entries, and one of the entries computed from the blocks.
 */
import { entriesOf } from '../engine/archive/tableWriter.ts';
import type { LevelRange } from '../format/levels.ts';
import {
  blocksPerFile,
  ENTRIES_PER_BLOCK,
  FINEST_BITS,
  fileBytes,
  hasCounts,
  type Level,
  type TableEntry,
  totalOf,
} from '../format/sortedTable.ts';
import { nameKeyOf } from '../lists/nameTable.ts';
import { archivePath } from '../pages/filePaths.ts';
import type { RuneNames } from '../runes/name.ts';
import { orFinding } from './findings.ts';
import type { ArchiveCheck } from './verification.ts';

/** Fingerprints have 48 bits, so that a JavaScript number represents the sum of two exactly. */
const MODULUS = 2 ** 48;

/** Number and sum of the fingerprints of a set of entries. The order in which entries are added does not matter. */
export class Fingerprints {
  count = 0;
  #sum = 0;

  /** Adds an entry. Its numbers must have at most 53 bits. */
  add(entry: readonly number[]): void {
    let [a, b] = [0x811c9dc5, 0x9747b28c];
    for (const value of entry)
      for (const half of [value % 0x100000000, Math.floor(value / 0x100000000)]) {
        a = mixed(a ^ half);
        b = mixed(Math.imul(b, 31) ^ half);
      }
    this.count += 1;
    this.#sum = (this.#sum + (a >>> 0) * 0x10000 + (b >>> 16)) % MODULUS;
  }

  equals(other: Fingerprints): boolean {
    return this.count === other.count && this.#sum === other.#sum;
  }
}

/** Computes the last step of MurmurHash3: each bit of the input changes about half of the 32 bits of the result. */
function mixed(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

export interface ExpectedEntries extends LevelRange {
  readonly entries: Fingerprints;
}

export const levelAt = <Range extends LevelRange>(levels: readonly Range[], height: number): Range | undefined =>
  levels.find(({ first, last }) => height >= first && height <= last);

const NAME = /^(?:[0-9]+(?::[0-9]+)?|[A-Z]+)$/;
const RUNE_ID = /^(0|[1-9][0-9]{0,7}):(0|[1-9][0-9]{0,9})$/;

/**
 * Adds the entries that a rune has in the table of names (lists/nameTable.ts). `ordinal` is the position of its
 * etching, or 0 without etchings. If the same rune may be added again, give `known`, which remembers the added names
 * and ids.
 */
export function addNames({ id, number, name }: RuneNames, ordinal: number, entries: Fingerprints, known?: Set<string>): void {
  const [height = 0, first = 0] = RUNE_ID.exec(id)?.slice(1).map(Number) ?? [];
  const fits = height < 2 ** 24 && first < 2 ** 32;
  for (const one of [id, String(number), name]) {
    if (!NAME.test(one) || known?.has(`${one} ${id}`) === true) continue;
    known?.add(`${one} ${id}`);
    entries.add([nameKeyOf(one), fits ? height : 0, fits ? first : 0, ordinal]);
  }
}

/**
 * Compares the levels of a table (format/levels.ts) with `ranges`: the heights that each level must cover, and the
 * fingerprints of the entries that it must have. `what` names the table in findings.
 */
export function checkTable(what: string, levels: readonly Level[], ranges: readonly ExpectedEntries[], check: ArchiveCheck): void {
  const { findings, rootPath } = check;
  const expected = ranges.filter(({ entries }) => entries.count > 0);
  if (expected.length !== levels.length)
    findings.add(`${rootPath} has ${levels.length} levels of the ${what}, expected ${expected.length}`);
  for (const { first, last, entries } of expected) {
    const level = levels.find((one) => one.first === first && one.last === last);
    if (level === undefined) findings.add(`${rootPath} has no level of the ${what} for the blocks ${first} to ${last}`);
    else orFinding(findings, () => checkLevel(what, level, entries, check));
  }
}

function checkLevel(what: string, level: Level, expected: Fingerprints, check: ArchiveCheck): void {
  const found = new Fingerprints();
  let [isSorted, last] = [true, [-1]];
  const isCounted = readEntries(level, check, ({ key, height, first, count }) => {
    const next = [key, height, first, count];
    isSorted &&= isAbove(next, last);
    last = next;
    found.add(next);
  });
  if (!isSorted || !isCounted || !found.equals(expected))
    check.findings.add(`the ${what} of the blocks ${level.first} to ${level.last} differs from the table that a build makes`);
}

/**
 * Checks the files of a level, and passes its entries to `add`. Returns false if the counts of the level do not match
 * its entries. Throws an error for a damaged file.
 */
export function readEntries(level: Level, check: ArchiveCheck, add: (entry: TableEntry) => void): boolean {
  checkFiles(level, check);
  const byKey = new Float64Array(2 ** FINEST_BITS);
  for (const entry of entriesOf(check.archive, level)) {
    const at = Math.floor(entry.key / 2 ** (48 - FINEST_BITS));
    byKey[at] = (byKey[at] ?? 0) + 1;
    add(entry);
  }
  return hasCounts(level, byKey);
}

/** Checks the number, sizes and names of a level's files. `perBlock` is the number of entries in a table's block. */
export function checkFiles(level: Level, { archive, findings }: ArchiveCheck, perBlock = ENTRIES_PER_BLOCK): void {
  const { objectSize } = archive.root;
  for (const [i, file] of level.files.entries())
    if (archive.read(file).length !== fileBytes(level, i, objectSize, perBlock)) findings.add(`${archivePath(file)} has a wrong size`);
  if (Math.ceil(Math.ceil(totalOf(level) / perBlock) / blocksPerFile(objectSize)) !== level.files.length)
    findings.add(`the tables of the blocks ${level.first} to ${level.last} have a wrong number of files`);
}

/** True if entry `a` sorts after entry `b`: the first number that differs decides. False for equal entries. */
export function isAbove(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, value] of a.entries()) if (value !== b[i]) return value > (b[i] ?? 0);
  return false;
}
