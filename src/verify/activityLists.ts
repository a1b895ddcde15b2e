/**
 * Verifies the lists of activity of an archive: which records belong to which lists is found again from the pages of
 * the blocks. Sums of fingerprints stand for the pointers of a level, because they may not fit into memory.
 */
import { createHash } from 'node:crypto';
import { type ActivityLevel, headEntries, LISTED, type ListKey, POINTERS_PER_BLOCK, type Pointer } from '../archive/activityTables.ts';
import { countBefore } from '../archive/bisect.ts';
import { ArchiveError } from '../archive/error.ts';
import { type LevelRange, levelRanges } from '../archive/levels.ts';
import {
  blocksPerFile,
  ENTRIES_PER_BLOCK,
  FINEST_BITS,
  fileBytes,
  hasCounts,
  type Level,
  type TableEntry,
  totalOf,
} from '../archive/sortedTable.ts';
import type { StoredArchive } from '../archiver/storedArchive.ts';
import { entriesOf, pointersOf } from '../archiver/tables.ts';
import type { Manifest } from '../contract/schemas.ts';
import { archivePath } from '../pages/paths.ts';
import { type ArchiveVerification, EntrySum } from './archive.ts';
import type { Activity } from './blocks.ts';
import { type Findings, orFinding } from './findings.ts';
import { addNames } from './names.ts';

/** Fingerprints have 48 bits, so a number holds the sum of two exactly. */
const MODULUS = 2 ** 48;

/** The pointers of a level: their number, and the sum of their fingerprints. */
class PointerSum {
  count = 0;
  sum = 0;

  add({ upper, lower }: ListKey, { position, length, record }: Pointer): void {
    let [a, b] = [0x811c9dc5, 0x9747b28c];
    for (const value of [upper, lower, position, length, record]) {
      for (const half of [value % 0x100000000, Math.floor(value / 0x100000000)]) {
        a = mixed(a ^ half);
        b = mixed(Math.imul(b, 31) ^ half);
      }
    }
    this.count += 1;
    this.sum = (this.sum + (a >>> 0) * 0x10000 + (b >>> 16)) % MODULUS;
  }
}

/** The last step of MurmurHash3, which spreads 32 bits. */
function mixed(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

function keyOf(text: string): ListKey {
  const hash = createHash('sha256').update(text).digest();
  return { upper: hash.readUIntBE(0, 6), lower: hash.readUIntBE(6, 3) };
}

/** Runes whose keys are in memory. */
const MOST_KEYS = 10_000;

/** What the blocks of a level say about it. */
interface ExpectedLevel extends LevelRange {
  /** Size of the pages of all blocks below, in bytes. */
  begin: number;
  readonly pointers: PointerSum;
  /** Where the pages of each block begin, from the level's first page on. */
  readonly starts: number[];
  /** Entries of the table of names. None if the archive has etchings. */
  readonly sum: EntrySum;
  readonly names: Set<string>;
}

export class ActivityVerification {
  readonly #verification: ArchiveVerification;
  readonly #archive: StoredArchive;
  readonly #findings: Findings;
  readonly #levels: ExpectedLevel[];
  /** Keys of runes, because most records are of few runes. */
  readonly #keys = new Map<string, ListKey>();
  /** Size of the pages of all blocks so far, in bytes. */
  #bytes = 0;

  private constructor(verification: ArchiveVerification, findings: Findings) {
    const { archive, tip, lowest } = verification;
    this.#verification = verification;
    this.#archive = archive;
    this.#findings = findings;
    const { lists } = archive.root;
    if (lists?.tip !== tip || lists.lowest !== lowest)
      findings.add(`${archivePath(archive.name.root)} has lists of other blocks than the manifest`);
    this.#levels = (lists === undefined ? [] : levelRanges(tip, lists, lowest)).map((range) => ({
      ...range,
      begin: 0,
      pointers: new PointerSum(),
      starts: [],
      sum: new EntrySum(),
      names: new Set(),
    }));
  }

  /** Returns undefined for an archive without lists. */
  static of(archive: ArchiveVerification | undefined, { lists }: Manifest, findings: Findings): ActivityVerification | undefined {
    if (archive === undefined) return undefined;
    const { root, name } = archive.archive;
    for (const part of ['rune_activity', 'address_activity'] as const) {
      if ((lists?.[part] === undefined) === (root.lists?.activity === undefined)) continue;
      findings.add(`${archivePath(name.root)} and the manifest differ in whether there are lists by rune and by address`);
      return undefined;
    }
    return root.lists?.activity === undefined ? undefined : new ActivityVerification(archive, findings);
  }

  /** Counts a block. Heights must ascend. `pages` are the lengths of its pages, which have `pageSize` records each. */
  add(height: number, records: readonly Activity[], pages: readonly number[]): void {
    const level = this.#levels.find(({ first, last }) => height >= first && height <= last);
    if (level === undefined) return;
    if (level.starts.length === 0) level.begin = this.#bytes;
    level.starts.push(this.#bytes - level.begin);
    const { pageSize } = this.#archive.root;
    let position = this.#bytes - level.begin;
    for (const [page, length] of pages.entries()) {
      for (const [record, { rune, address }] of records.slice(page * pageSize, (page + 1) * pageSize).entries()) {
        const pointer = { position, length, record };
        level.pointers.add(this.#runeKey(rune, level), pointer);
        if (address === undefined) continue;
        level.pointers.add(keyOf(LISTED.address(address)), pointer);
        level.pointers.add(keyOf(LISTED.both(rune.id, address)), pointer);
      }
      position += length;
    }
    this.#bytes = position + level.begin;
  }

  #runeKey({ id, number, name }: Activity['rune'], { sum, names }: ExpectedLevel): ListKey {
    if (this.#archive.root.lists?.etchings === undefined) addNames({ id, number, name, ordinal: 0 }, sum, names);
    const known = this.#keys.get(id);
    if (known !== undefined) return known;
    if (this.#keys.size >= MOST_KEYS) this.#keys.clear();
    const key = keyOf(LISTED.rune(id));
    this.#keys.set(id, key);
    return key;
  }

  /** Compares the lists with the blocks, after all of these were added. */
  finish(): void {
    const { root, name } = this.#archive;
    const expected = this.#levels.filter(({ pointers }) => pointers.count > 0);
    const rangeOf = ({ first, last }: LevelRange, begin: number) => `${first}-${last} from byte ${begin}`;
    const ranges = (root.lists?.activity ?? []).map(({ heads, begin }) => rangeOf(heads, begin));
    if (ranges.join() !== expected.map((level) => rangeOf(level, level.begin)).join()) {
      this.#findings.add(`${archivePath(name.root)} has other levels of lists than a build makes`);
      return;
    }
    if (root.lists?.etchings === undefined) this.#verification.checkTable('table of names', root.lists?.names ?? [], this.#levels);
    for (const [i, level] of (root.lists?.activity ?? []).entries()) {
      const blocks = expected[i];
      if (blocks !== undefined) orFinding(this.#findings, () => this.#checkLevel(level, blocks));
    }
  }

  #checkLevel({ heads, pointers }: ActivityLevel, blocks: ExpectedLevel): void {
    this.#checkSizes(heads);
    this.#checkSizes(pointers, POINTERS_PER_BLOCK);
    const found = new PointerSum();
    const byKey = new Float64Array(2 ** FINEST_BITS);
    const reader = pointersOf(this.#archive, pointers);
    let [isRight, last] = [true, ''];
    for (const group of byList(entriesOf(this.#archive, heads))) {
      const [{ key: upper, height: lower } = { key: 0, height: 0 }] = group;
      const at = Math.floor(upper / 2 ** (48 - FINEST_BITS));
      byKey[at] = (byKey[at] ?? 0) + group.length;
      const key = textOf({ upper, lower });
      if (key <= last) isRight = false;
      last = key;
      const count = group.reduce((sum, entry) => sum + entry.count, 0);
      const expected = headEntries({ upper, lower }, { position: found.count, count });
      if (JSON.stringify(group) !== JSON.stringify(expected)) isRight = false;
      if (!addList({ upper, lower }, count, reader, blocks.starts, found)) isRight = false;
    }
    const isSame =
      found.count === blocks.pointers.count && found.sum === blocks.pointers.sum && pointers.counts.join() === String(found.count);
    if (!isRight || !isSame || !hasCounts(heads, byKey)) {
      this.#findings.add(`the lists of the blocks ${heads.first} to ${heads.last} are not those that a build makes`);
    }
  }

  #checkSizes(level: Level, perBlock?: number): void {
    const { objectSize } = this.#archive.root;
    for (const [i, file] of level.files.entries()) {
      if (this.#archive.read(file).length !== fileBytes(level, i, objectSize, perBlock))
        this.#findings.add(`${archivePath(file)} has a wrong size`);
    }
    if (Math.ceil(Math.ceil(totalOf(level) / (perBlock ?? ENTRIES_PER_BLOCK)) / blocksPerFile(objectSize)) !== level.files.length) {
      this.#findings.add(`the lists of the blocks ${level.first} to ${level.last} have a wrong number of files`);
    }
  }
}

/** The digits of a key, which sort like it. */
const textOf = ({ upper, lower }: ListKey): string => upper.toString(16).padStart(12, '0') + lower.toString(16).padStart(6, '0');

/** Joins consecutive entries of the same key. */
function* byList(entries: Iterable<TableEntry>): Generator<TableEntry[]> {
  let group: TableEntry[] = [];
  for (const entry of entries) {
    const [first] = group;
    if (first !== undefined && (first.key !== entry.key || first.height !== entry.height)) {
      yield group;
      group = [];
    }
    group.push(entry);
  }
  if (group.length > 0) yield group;
}

/** Adds the next `count` pointers to a sum. Returns false if they are not newest first. */
function addList(key: ListKey, count: number, reader: Generator<Pointer>, starts: readonly number[], sum: PointerSum): boolean {
  let isSorted = true;
  let last: Pointer | undefined;
  for (let i = 0; i < count; i += 1) {
    const { value, done } = reader.next();
    if (done === true) throw new ArchiveError('a list of the archive is too long');
    if (last !== undefined && !isBefore(last, value, starts)) isSorted = false;
    last = value;
    sum.add(key, value);
  }
  return isSorted;
}

/** True if a record is of a newer block than another one, or before it in the same block. */
function isBefore(a: Pointer, b: Pointer, starts: readonly number[]): boolean {
  const [newer, older] = [blockOf(a.position, starts), blockOf(b.position, starts)];
  return newer !== older ? newer > older : a.position !== b.position ? a.position < b.position : a.record < b.record;
}

/** Returns the index of the block that has a position. */
const blockOf = (position: number, starts: readonly number[]): number => countBefore(starts.length, (i) => (starts[i] ?? 0) <= position);
