/**
 * Verifies the archive of a build: every file has the content that its name says, and root, directories and tables are those
 * that a build makes of the blocks' records. Compressed bytes are not compared, because other versions of zlib make
 * others.
 *
 * The transactions of all history do not fit into memory. So a sum of fingerprints stands for the entries of each level:
 * one is made from the blocks, the other from the table.
 */
import { createHash } from 'node:crypto';
import { cut } from '../archive/cut.ts';
import type { PlacedBlock, Segment } from '../archive/directory.ts';
import { ArchiveError } from '../archive/error.ts';
import { type LevelRange, levelRanges } from '../archive/levels.ts';
import { renderRoot } from '../archive/root.ts';
import {
  BLOCK_BYTES,
  checkBlocks,
  ENTRIES_PER_BLOCK,
  ENTRY_BYTES,
  Entries,
  entriesPerFile,
  FINEST_BITS,
  hasCounts,
  keyOf,
  type Level,
  type TableEntry,
  totalOf,
  writeEntry,
} from '../archive/sortedTable.ts';
import { describe } from '../archiver/archive.ts';
import { StoredArchive } from '../archiver/storedArchive.ts';
import type { BlockDigest } from '../output/digests.ts';
import { ENVELOPE_TAIL, envelopeHead } from '../pages/envelope.ts';
import { archivePath } from '../pages/paths.ts';
import { type BuiltSite, maximumLimit } from '../pages/site.ts';
import { sliceRecords } from '../render/recordBytes.ts';
import { type Batch, type BatchBlock, TX_ID_LENGTH } from '../render/servedOrder.ts';
import { countOperations } from '../write/blockSpool.ts';
import { inflate } from '../write/compress.ts';
import { type Findings, orFinding } from './findings.ts';

/** Fingerprints have 48 bits, so a number holds the sum of two exactly. */
const MODULUS = 2 ** 48;

/** The entries of a level: how many, how many by the first bits of their key, and the sum of their fingerprints. */
export class EntrySum {
  count = 0;
  sum = 0;
  readonly byKey = new Float64Array(2 ** FINEST_BITS);
  readonly #bytes = Buffer.alloc(ENTRY_BYTES);
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, ENTRY_BYTES);

  add(entry: TableEntry): void {
    writeEntry(this.#view, 0, entry);
    this.count += 1;
    this.sum = (this.sum + createHash('sha256').update(this.#bytes).digest().readUIntBE(0, 6)) % MODULUS;
    const at = Math.floor(entry.key / 2 ** (48 - FINEST_BITS));
    this.byKey[at] = (this.byKey[at] ?? 0) + 1;
  }
}

/** The entries that a level of a table must have. */
export interface ExpectedEntries extends LevelRange {
  readonly sum: EntrySum;
}

export class ArchiveVerification {
  readonly archive: StoredArchive;
  readonly #site: BuiltSite;
  readonly #findings: Findings;
  readonly #ranges: readonly ExpectedEntries[];
  readonly #sizes: { readonly first: number; readonly last: number; readonly bytes: number }[] = [];
  /** The last block that was read; -1 without blocks. */
  readonly tip: number;
  /** False in layout `files` for an archive of nothing but etchings. */
  readonly hasPages: boolean;
  /** In layout `files` with pages, the lowest block. */
  readonly lowest: number | undefined;

  private constructor(archive: StoredArchive, site: BuiltSite, blocks: readonly BlockDigest[], findings: Findings) {
    this.archive = archive;
    this.#site = site;
    this.tip = site.tip;
    this.hasPages = site.layout === 'archive' || archive.root.lists?.activity !== undefined;
    this.lowest = site.layout === 'files' && this.hasPages ? (blocks[0]?.height ?? 0) : undefined;
    this.#findings = findings;
    // Layout `files` needs no table of ids.
    const ranges = site.layout === 'files' ? [] : levelRanges(this.tip, archive.root);
    this.#ranges = ranges.map((range) => ({ ...range, sum: new EntrySum() }));
  }

  /** Opens the archive of an output. If its root is damaged, adds a finding and returns undefined. */
  static open(root: string, site: BuiltSite, blocks: readonly BlockDigest[], findings: Findings): ArchiveVerification | undefined {
    return orFinding(findings, () => new ArchiveVerification(StoredArchive.in(root), site, blocks, findings));
  }

  /** The paths of all files that the root names, and its own. */
  get paths(): string[] {
    return [...describe(this.archive.name, this.archive.root).paths];
  }

  /** Returns the texts of a block's pages, with the path of the file that each is in. Throws an error when one is damaged. */
  pagesOf(block: BlockDigest): [path: string, text: string][] {
    const texts: [string, string][] = [];
    for (const segment of this.#segmentsOf(block.height)) {
      const { pages, placed } = this.#open(segment, block.height);
      for (const [i, length] of placed.pages.entries()) {
        const offset = placed.offsets[i] ?? 0;
        const text = inflate(pages.subarray(offset, offset + length));
        texts.push([archivePath(segment.file), text]);
      }
    }
    return texts;
  }

  /** Returns the lengths of a block's pages. Throws an error when its segments are damaged. */
  pageLengths(height: number): number[] {
    return this.#segmentsOf(height).flatMap((segment) => this.#open(segment, height).placed.pages);
  }

  /** Compares the pages and directory lines of a block with those that a build makes of its records. */
  checkBlock(batch: Batch, block: BatchBlock): void {
    const limit = maximumLimit(this.#site);
    const total = Math.ceil(block.records / limit);
    let [page, bytes] = [0, 0];
    for (const segment of this.#segmentsOf(block.height)) {
      const { pages, placed } = this.#open(segment, block.height);
      const wrong = (what: string) => this.#findings.add(`${archivePath(segment.file)} ${what} block ${block.height}`);
      const from = page;
      for (const [i, length] of placed.pages.entries()) {
        const offset = page * limit;
        const end = Math.min(offset + limit, block.records);
        const records = Buffer.from(sliceRecords(batch, block.first + offset, block.first + end)).toString('utf8');
        const start = placed.offsets[i] ?? 0;
        const text = inflate(pages.subarray(start, start + length));
        if (text !== envelopeHead({ limit, offset }, block.records) + records + ENVELOPE_TAIL) wrong('has a wrong page of');
        page += 1;
        bytes += length;
      }
      const { hash, records, page: first = 0, operations } = placed;
      const expected = countOperations(batch, block, limit, { from, to: page });
      const isRight = hash === block.hash && records === block.records && first === from;
      if (!isRight || JSON.stringify(operations) !== JSON.stringify(expected)) wrong('has a wrong line in its directory for');
      const sums = Object.fromEntries(
        Object.entries(expected).map(([name, counts]) => [name, counts.reduce((sum, count) => sum + count, 0)]),
      );
      const part = placed.pages.length === total ? undefined : { page: from, operations: sums };
      if (JSON.stringify(segment.part) !== JSON.stringify(part)) wrong('has wrong counts in the root for');
    }
    if (page !== total) this.#findings.add(`the archive has ${page} pages of block ${block.height}, expected ${total}`);
    this.#sizes.push({ first: block.height, last: block.height, bytes });
    this.#addEntries(batch, block);
  }

  #addEntries(batch: Batch, block: BatchBlock): void {
    const { sum } = this.#ranges.find(({ first, last }) => block.height >= first && block.height <= last) ?? {};
    const ids = Buffer.from(batch.txIds.buffer, batch.txIds.byteOffset, batch.txIds.length);
    let first = 0;
    sum?.add({ key: keyOf(block.hash), height: block.height, first: 0, count: 0 });
    for (let i = block.firstTx; i < block.firstTx + block.transactions; i += 1) {
      const count = batch.txRecords[i] ?? 0;
      sum?.add({ key: keyOf(ids.toString('latin1', i * TX_ID_LENGTH, (i + 1) * TX_ID_LENGTH)), height: block.height, first, count });
      first += count;
    }
  }

  /** Checks what follows from all blocks: segments, tables and root. Call it after `checkBlock` of every block. */
  finish(): void {
    const { root, name } = this.archive;
    const cuts = cut(this.#sizes, this.tip, root).map(({ first, last }) => `${first}-${last}`);
    const ranges = new Set(root.segments.map(({ first, last }) => `${first}-${last}`));
    if (cuts.join() !== [...ranges].join()) this.#findings.add(`${archivePath(name.root)} cuts the blocks into wrong segments`);
    if (root.pageSize !== maximumLimit(this.#site)) this.#findings.add(`${archivePath(name.root)} has a wrong page size`);
    const text = inflate(this.archive.read(name.root));
    if (text !== renderRoot(root)) this.#findings.add(`${archivePath(name.root)} is not a root that a build makes`);
    this.checkTable('table', root.ids, this.#ranges);
  }

  /** Compares the levels of a sorted table with the entries that they must have. `what` names the table in findings. */
  checkTable(what: string, levels: readonly Level[], ranges: readonly ExpectedEntries[]): void {
    const name = archivePath(this.archive.name.root);
    const expected = ranges.filter(({ sum }) => sum.count > 0);
    if (expected.length !== levels.length)
      this.#findings.add(`${name} has ${levels.length} levels of the ${what}, expected ${expected.length}`);
    for (const { first, last, sum } of expected) {
      const level = levels.find((one) => one.first === first && one.last === last);
      if (level === undefined) this.#findings.add(`${name} has no level of the ${what} for the blocks ${first} to ${last}`);
      else orFinding(this.#findings, () => this.#checkLevel(what, level, sum));
    }
  }

  #checkLevel(what: string, level: Level, expected: EntrySum): void {
    const found = new EntrySum();
    const total = totalOf(level);
    const perFile = entriesPerFile(this.archive.root.objectSize);
    let [isSorted, last] = [true, [-1, 0, 0, 0]];
    for (const [i, file] of level.files.entries()) {
      const content = this.archive.read(file);
      const count = Math.min(perFile, total - i * perFile);
      if (content.length !== Math.ceil(count / ENTRIES_PER_BLOCK) * BLOCK_BYTES)
        this.#findings.add(`${archivePath(file)} has a wrong size`);
      checkBlocks(content);
      const entries = new Entries(content, 0);
      for (let position = 0; position < Math.min(count, entries.end); position += 1) {
        const entry = entries.at(position);
        const next = [entry.key, entry.height, entry.first, entry.count];
        if (isSorted && !isAbove(next, last)) isSorted = false;
        last = next;
        found.add(entry);
      }
    }
    const isRight = isSorted && found.sum === expected.sum && hasCounts(level, expected.byKey);
    if (!isRight) this.#findings.add(`the ${what} of the blocks ${level.first} to ${level.last} is not the one that a build makes`);
  }

  #segmentsOf(height: number): Segment[] {
    return this.archive.root.segments.filter(({ first, last }) => first <= height && height <= last);
  }

  /** Reads a segment, and returns its pages and the line of a block. */
  #open(segment: Segment, height: number): { readonly pages: Buffer; readonly placed: PlacedBlock } {
    const { pages, blocks } = this.archive.segment(segment);
    const placed = blocks.get(height);
    if (placed === undefined) throw new ArchiveError(`the directory does not have block ${height}`);
    return { pages, placed };
  }
}

function isAbove(a: readonly number[], b: readonly number[]): boolean {
  for (const [i, value] of a.entries()) if (value !== b[i]) return value > (b[i] ?? 0);
  return false;
}
