/**
 * Verifies the etchings of layout `archive`. Each level has the pages that changed in its blocks, as they are after the
 * last of these. So a level is checked when all its blocks were counted, and no later block.
 */
import { parsePageDirectory } from '../archive/etchings.ts';
import { type LevelRange, levelRanges } from '../archive/levels.ts';
import type { EtchingFile } from '../archive/root.ts';
import { FINEST_BITS, hasCounts } from '../archive/sortedTable.ts';
import { nameEntries } from '../archiver/etchings.ts';
import type { StoredArchive } from '../archiver/storedArchive.ts';
import { entriesOf } from '../archiver/tables.ts';
import { messageOf } from '../errors.ts';
import { namesOf } from '../etchings/names.ts';
import { archivePath } from '../pages/paths.ts';
import { maximumLimit } from '../pages/site.ts';
import { inflate } from '../write/compress.ts';
import { orFinding } from './archive.ts';
import type { Findings } from './findings.ts';
import { type EtchingChecks, type ReadEtching, readPage } from './supply.ts';

/** A level whose pages were compared with the records. */
interface CheckedLevel extends LevelRange {
  readonly pages: readonly number[];
  /** Runes with mints or burns in its blocks. */
  readonly touched: ReadonlySet<string>;
}

export class ArchivedEtchings {
  readonly #archive: StoredArchive;
  readonly #checks: EtchingChecks;
  readonly #findings: Findings;
  /** Levels whose blocks were not all counted. */
  readonly #left: LevelRange[];
  readonly #levels: CheckedLevel[] = [];
  /** Pages of the newest level so far. */
  readonly #newest = new Map<number, readonly ReadEtching[]>();

  constructor(archive: StoredArchive, tip: number, checks: EtchingChecks, findings: Findings) {
    this.#archive = archive;
    this.#left = levelRanges(tip, archive.root);
    this.#checks = checks;
    this.#findings = findings;
  }

  /** Checks the levels that end below a height, whose blocks were all counted. */
  checkBelow(height: number): void {
    for (let range = this.#left[0]; range !== undefined && range.last < height; range = this.#left[0]) {
      this.#left.shift();
      this.#checkLevel(range);
    }
  }

  /** Checks the other levels, and what follows from all etchings. Returns the etchings, oldest first. */
  finish(total: number): ReadEtching[] {
    this.checkBelow(Number.POSITIVE_INFINITY);
    const { etchings } = this.#archive.root;
    const name = archivePath(this.#archive.name.root);
    const all = [...this.#newest.entries()].sort(([a], [b]) => a - b).flatMap(([, page]) => page);
    if (etchings?.total !== total || all.length !== total) this.#findings.add(`${name} has another number of etchings than the manifest`);
    if (this.#findings.count > 0) return all;
    const ordinals = new Map(all.map(({ id }, ordinal) => [id, ordinal]));
    for (const level of this.#levels) {
      const [found, expected] = [level.pages.join(), this.#expectedPages(level, all, ordinals).join()];
      if (found !== expected) this.#findings.add(`${name} has other pages of etchings for the blocks ${level.first} to ${level.last}`);
      orFinding(this.#findings, () => this.#checkNames(level, all));
    }
    if (etchings?.pages.some((file) => !this.#levels.some((level) => isSame(file, level))))
      this.#findings.add(`${name} has etchings of other blocks`);
    return all;
  }

  #checkLevel(range: LevelRange): void {
    const pages: number[] = [];
    const touched = this.#checks.recount.takeTouched();
    let end: number | undefined;
    for (const file of this.#archive.root.etchings?.pages ?? []) {
      if (!isSame(file, range)) continue;
      try {
        end = this.#checkFile(file, range.last, end, pages);
      } catch (error) {
        this.#findings.add(`${archivePath(file.file)}: ${messageOf(error)}`);
      }
    }
    this.#levels.push({ ...range, pages, touched });
  }

  /** Checks a file. `before` is the size of the pages in the file before it. Returns the size of its own. */
  #checkFile(file: EtchingFile, tip: number, before: number | undefined, pages: number[]): number {
    const { objectSize } = this.#archive.root;
    const content = this.#archive.read(file.file);
    if (content.length !== file.bytes) throw new Error('has a wrong size');
    const end = file.bytes - file.directory;
    const places = [...parsePageDirectory(inflate(content.subarray(end)), file)];
    const first = places[0]?.[1].length ?? 0;
    const isCutRight = (end <= objectSize || places.length === 1) && (before === undefined || before + first > objectSize);
    if (!isCutRight) throw new Error('has another number of pages than a build puts into it');
    for (const [page, { offset, length }] of places) {
      this.#newest.set(page, readPage(inflate(content.subarray(offset, offset + length)), tip, this.#checks));
      pages.push(page);
    }
    return end;
  }

  /** Returns the pages that changed in the blocks of a level. */
  #expectedPages({ first, last, touched }: CheckedLevel, all: readonly ReadEtching[], ordinals: ReadonlyMap<string, number>): number[] {
    const { hasCounts, site } = this.#checks;
    const changed = all.filter((etching) => {
      if (etching.block_height > last) return false;
      return etching.block_height >= first || (hasCounts && (touched.has(etching.id) || hasMoved(etching, first + 1, last + 1)));
    });
    const pages = changed.map(({ id }) => Math.floor((ordinals.get(id) ?? 0) / maximumLimit(site)));
    return [...new Set(pages)].sort((a, b) => a - b);
  }

  #checkNames(level: CheckedLevel, all: readonly ReadEtching[]): void {
    const runes = all.map((etching, ordinal) => ({ height: etching.block_height, ordinal, names: namesOf(etching) }));
    const expected = nameEntries(runes.filter(({ height }) => height >= level.first && height <= level.last));
    const table = this.#archive.root.etchings?.names.find((one) => isSame(one, level));
    const found = table === undefined ? [] : [...entriesOf(this.#archive, table)];
    const finest = new Float64Array(2 ** FINEST_BITS);
    for (const { key } of expected) {
      const at = Math.floor(key / 2 ** (48 - FINEST_BITS));
      finest[at] = (finest[at] ?? 0) + 1;
    }
    const isRight =
      found.length === expected.length &&
      found.every(({ key, height, first, count }, i) => {
        const one = expected[i];
        return key === one?.key && first === one.ordinal && height === 0 && count === 0;
      }) &&
      (table === undefined || hasCounts(table, finest));
    if (!isRight) this.#findings.add(`the table of names of the blocks ${level.first} to ${level.last} is not the one that a build makes`);
  }
}

const isSame = (a: LevelRange, b: LevelRange): boolean => a.first === b.first && a.last === b.last;

/** True when the mint window of a rune opens or closes at a height from `from` to `to`. */
function hasMoved(etching: ReadEtching, from: number, to: number): boolean {
  const { terms_height_start, terms_height_end, terms_offset_start, terms_offset_end, block_height } = etching;
  const isIn = (term: string | null, base: number) => {
    if (term === null) return false;
    const height = BigInt(base) + BigInt(term);
    return height >= from && height <= to;
  };
  return (
    [terms_height_start, terms_height_end].some((term) => isIn(term, 0)) ||
    [terms_offset_start, terms_offset_end].some((term) => isIn(term, block_height))
  );
}
