/**
 * Verifies ids and names. The entries of a level may not fit into memory, so this module compares two sums of
 * fingerprints: one of the stored entries, and one of the entries computed from the blocks.
 */
import { createHash } from 'node:crypto';
import { storedLists } from '../engine/archive/pagedLists.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
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

/**
 * Adds the names of a rune (lists/names.ts). `ordinal` is the position of its etching, or 0 without etchings. If the same
 * rune may be added again, give `known`, which remembers the added names and ids.
 */
export function addNames({ id, number, name }: RuneNames, ordinal: number, entries: Fingerprints, known?: Set<string>): void {
  for (const one of [id, String(number), name]) {
    if (!NAME.test(one) || known?.has(`${one} ${id}`) === true) continue;
    known?.add(`${one} ${id}`);
    addName(one, JSON.stringify([ordinal, id]), entries);
  }
}

/** Adds an entry of the names. */
function addName(name: string, rune: string, entries: Fingerprints): void {
  const hash = createHash('sha256').update(`${name} ${rune}`).digest();
  entries.add([hash.readUIntBE(0, 6), hash.readUIntBE(6, 6)]);
}

/** A kind of lists: its name in findings, its levels, and the maximum number of entries in a document. */
interface KeyedLists {
  readonly what: string;
  readonly levels: readonly DocumentLevel[];
  readonly page: number;
  /** Adds an entry of the list with this key. Throws for a damaged entry. */
  readonly add: (key: string, entry: string, entries: Fingerprints) => void;
  /** True if the first entry must come before the second in a list. */
  readonly isBefore: (a: string, b: string) => boolean;
}

export const namesOf = (levels: readonly DocumentLevel[], page: number): KeyedLists => ({
  ...{ what: 'names', levels, page, add: addName },
  isBefore: (a, b) => a < b,
});

/**
 * Compares the levels of lists (format/levels.ts) with `ranges`: the heights that each level must cover, and the
 * fingerprints of the entries that it must have.
 */
export function checkLists(lists: KeyedLists, ranges: readonly ExpectedEntries[], check: ArchiveCheck): void {
  const { what, levels } = lists;
  const { findings, rootPath } = check;
  const expected = ranges.filter(({ entries }) => entries.count > 0);
  if (expected.length !== levels.length)
    findings.add(`${rootPath} has ${levels.length} levels of the ${what}, expected ${expected.length}`);
  for (const { first, last, entries } of expected) {
    const level = levels.find((one) => one.first === first && one.last === last);
    if (level === undefined) findings.add(`${rootPath} has no level of the ${what} for the blocks ${first} to ${last}`);
    else orFinding(findings, () => checkLevel(lists, level, entries, check));
  }
}

function checkLevel({ what, page, add, isBefore }: KeyedLists, level: DocumentLevel, expected: Fingerprints, check: ArchiveCheck): void {
  const found = new Fingerprints();
  let isRight = true;
  for (const { key, values } of storedLists(check.archive, level, page)) {
    for (const [i, value] of values.entries()) {
      isRight &&= i === 0 || isBefore(values[i - 1] ?? '', value);
      add(key, value, found);
    }
  }
  if (!isRight || !found.equals(expected))
    check.findings.add(`the ${what} of the blocks ${level.first} to ${level.last} differ from those that a build makes`);
}
