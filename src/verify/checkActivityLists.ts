/**
 * Verifies the lists of activity of an archive. A list consists of pointers to records. Computes the pointers that each
 * list must have from the pages of the blocks. Compares only sums of fingerprints of pointers, because all pointers of
 * a level (format/levels.ts) may not fit into memory.
 */
import { createHash } from 'node:crypto';
import { documentsOf } from '../engine/archive/documentWriter.ts';
import { countBefore } from '../format/binarySearch.ts';
import { pageKey } from '../format/documentKeys.ts';
import { type LevelRange, levelRanges } from '../format/levels.ts';
import type { PlacedLevel } from '../format/listTables.ts';
import { headKey, lengthIn } from '../format/pagedList.ts';
import { KEY_DIGITS, LISTED, type Pointer, parsePointers } from '../lists/activity.ts';
import type { Activity } from './checkBlock.ts';
import { addNames, checkLists, type ExpectedEntries, Fingerprints, levelAt, namesOf } from './checkTables.ts';
import { orFinding } from './findings.ts';
import type { ListsCheck } from './verification.ts';

function addPointer(sum: Fingerprints, key: string, { position, length, record }: Pointer): void {
  sum.add([Number.parseInt(key.slice(0, 9), 16), Number.parseInt(key.slice(9), 16), position, length, record]);
}

const keyOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, KEY_DIGITS);

/** Positions of expected pointers are relative to the level's first page. */
const FROM_LEVEL = { begin: 0 };

/** Maximum number of runes whose keys are cached. */
const MOST_KEYS = 10_000;

/**
 * Expected content of a level, computed from its blocks. `entries` has the level's names
 * (lists/names.ts). `entries` is empty if the archive has etchings, because checkEtchings.ts then checks this
 * table.
 */
interface ExpectedLevel extends ExpectedEntries {
  /** Size of the pages of all blocks below the level, in bytes. */
  begin: number;
  readonly pointers: Fingerprints;
  /** Position of the first page of each block, in bytes from the level's first page on. */
  readonly starts: number[];
  /** Names and ids that were added to `entries`. */
  readonly names: Set<string>;
}

export class ActivityVerification {
  readonly #levels: ExpectedLevel[];
  /** Keys of runes by id. Cached, because a few runes have most of the records. */
  readonly #keys = new Map<string, string>();
  /** Size of the pages of all blocks so far, in bytes. */
  #bytes = 0;

  private constructor(private readonly check: ListsCheck) {
    const { site, blocks, findings, lists, rootPath } = check;
    const lowest = site.layout === 'files' ? (blocks[0]?.height ?? 0) : undefined;
    if (lists.tip !== site.tip || lists.lowest !== lowest) findings.add(`${rootPath} has lists of other blocks than the manifest`);
    this.#levels = levelRanges(site.tip, lists, lowest).map((range) => ({
      ...range,
      begin: 0,
      pointers: new Fingerprints(),
      starts: [],
      entries: new Fingerprints(),
      names: new Set(),
    }));
  }

  /** Returns undefined for an archive without lists of activity. */
  static of(check: ListsCheck | undefined): ActivityVerification | undefined {
    if (check === undefined) return undefined;
    const { manifest, findings, lists, rootPath } = check;
    for (const part of ['rune_activity', 'address_activity'] as const) {
      if ((manifest.lists?.[part] === undefined) === (lists.activity === undefined)) continue;
      findings.add(`${rootPath} and the manifest disagree whether there are lists by rune and by address`);
      return undefined;
    }
    return lists.activity === undefined ? undefined : new ActivityVerification(check);
  }

  /** Adds a block. Heights must ascend. `pages` has the length of each of the block's pages, in bytes. */
  add(height: number, records: readonly Activity[], pages: readonly number[]): void {
    const level = levelAt(this.#levels, height);
    if (level === undefined) return;
    if (level.starts.length === 0) level.begin = this.#bytes;
    level.starts.push(this.#bytes - level.begin);
    const { pageSize } = this.check.archive.root;
    let position = this.#bytes - level.begin;
    for (const [page, length] of pages.entries()) {
      for (const [record, { rune, address }] of records.slice(page * pageSize, (page + 1) * pageSize).entries()) {
        const pointer = { position, length, record };
        addPointer(level.pointers, this.#runeKey(rune, level), pointer);
        if (address === undefined) continue;
        addPointer(level.pointers, keyOf(LISTED.address(address)), pointer);
        addPointer(level.pointers, keyOf(LISTED.both(rune.id, address)), pointer);
      }
      position += length;
    }
    this.#bytes = position + level.begin;
  }

  #runeKey(rune: Activity['rune'], { entries, names }: ExpectedLevel): string {
    if (this.check.lists.etchings === undefined) addNames(rune, 0, entries, names);
    const known = this.#keys.get(rune.id);
    if (known !== undefined) return known;
    if (this.#keys.size >= MOST_KEYS) this.#keys.clear();
    const key = keyOf(LISTED.rune(rune.id));
    this.#keys.set(rune.id, key);
    return key;
  }

  /** Compares the lists with the blocks. Call it after `add` of every block. */
  finish(): void {
    const { findings, lists, rootPath } = this.check;
    const { activity = [], etchings, names } = lists;
    const expected = this.#levels.filter(({ pointers }) => pointers.count > 0);
    const rangeOf = ({ first, last }: LevelRange, begin: number) => `${first}-${last} from byte ${begin}`;
    const ranges = activity.map((level) => rangeOf(level, level.begin));
    if (ranges.join() !== expected.map((level) => rangeOf(level, level.begin)).join())
      return void findings.add(`${rootPath} has other levels of lists than a build makes`);
    if (etchings === undefined) checkLists(namesOf(names, lists.page), this.#levels, this.check);
    for (const [i, level] of activity.entries()) {
      const blocks = expected[i];
      if (blocks !== undefined) orFinding(findings, () => this.#checkLevel(level, blocks));
    }
  }

  #checkLevel(level: PlacedLevel, blocks: ExpectedLevel): void {
    const { archive, lists, findings } = this.check;
    const found = new Fingerprints();
    let isRight = true;
    /** The current list, and its pages and entries so far. */
    let list = { key: '', pages: 0, entries: 0 };
    let last: Pointer | undefined;
    const pointersIn = (values: readonly string[]): readonly Pointer[] => {
      try {
        return parsePointers(values, FROM_LEVEL);
      } catch {
        isRight = false;
        return [];
      }
    };
    for (const { key: document, values } of documentsOf(archive, level)) {
      const key = document.slice(0, KEY_DIGITS);
      if (key !== list.key) {
        isRight &&= list.pages === 0;
        [list, last] = [{ key, pages: 0, entries: 0 }, undefined];
      }
      const length = list.pages > 0 ? lengthIn(values) : undefined;
      if (document === pageKey(key, list.pages)) {
        // All pages before this one must be full.
        isRight &&= list.entries === list.pages * lists.page;
        list.pages += 1;
      } else {
        isRight &&= document === headKey(key) && (list.pages === 0 || (length === list.entries && length > lists.page));
        list.pages = 0;
      }
      for (const pointer of length === undefined ? pointersIn(values) : []) {
        isRight &&= last === undefined || isBefore(last, pointer, blocks.starts);
        last = pointer;
        addPointer(found, key, pointer);
        list.entries += 1;
      }
      isRight &&= values.length <= lists.page;
    }
    if (!isRight || list.pages > 0 || !found.equals(blocks.pointers))
      findings.add(`the lists of the blocks ${level.first} to ${level.last} differ from the lists that a build makes`);
  }
}

/** True if pointer `a` must come before `b` in a list: its record is in a newer block, or earlier in the same block. */
function isBefore(a: Pointer, b: Pointer, starts: readonly number[]): boolean {
  const [newer, older] = [blockOf(a.position, starts), blockOf(b.position, starts)];
  return newer !== older ? newer > older : a.position !== b.position ? a.position < b.position : a.record < b.record;
}

/** Returns the block of the level that contains a position: 1 for the oldest block, 2 for the next block, and so on. */
const blockOf = (position: number, starts: readonly number[]): number => countBefore(starts.length, (i) => (starts[i] ?? 0) <= position);
