/**
 * Verifies the archive of a build (src/format). The content of every file must match its name. Root, directories and lists must match the
 * records. Compressed bytes are not compared, because they depend on the version of zlib.
 */
import { createHash } from 'node:crypto';
import type { BlockDigest } from '../contract/schemas.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { countOperations } from '../engine/render/blockSpool.ts';
import { inflate, inflateBytes } from '../engine/render/compress.ts';
import { sliceRecords } from '../engine/render/recordBytes.ts';
import type { Batch, BatchBlock } from '../engine/render/servedOrder.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { cut } from '../format/cutSegments.ts';
import type { LevelRange } from '../format/levels.ts';
import { renderRoot } from '../format/root.ts';
import { type PlacedBlock, renderEntry, type Segment } from '../format/segmentDirectory.ts';
import { ENVELOPE_TAIL, envelopeHead } from '../pages/envelope.ts';
import { archivePath } from '../pages/filePaths.ts';
import { maximumLimit } from '../pages/mirrorOptions.ts';
import type { Verification } from './verification.ts';

/** What the segment at `path` has of a block: its line in the directory, and the hash of its pages. */
export interface BlockPart {
  readonly path: string;
  readonly segment: Segment;
  readonly placed: PlacedBlock;
  readonly hash: string;
}

export class ArchiveVerification {
  readonly #sizes: (LevelRange & { readonly bytes: number })[] = [];

  constructor(
    private readonly check: Verification,
    private readonly archive: StoredArchive,
  ) {}

  /** Reads the pages of a block. Throws an error when a segment is damaged. */
  read({ height }: BlockDigest) {
    const pages: { path: string; bytes: Buffer }[] = [];
    const parts: BlockPart[] = [];
    for (const segment of this.archive.root.segments) {
      if (height < segment.first || height > segment.last) continue;
      const opened = this.archive.segment(segment);
      const placed = opened.blocks.get(height);
      if (placed === undefined) throw new ArchiveError(`the directory does not have block ${height}`);
      const path = archivePath(segment.file);
      const hash = createHash('sha256');
      for (const [i, length] of placed.pages.entries()) {
        const start = placed.offsets[i] ?? 0;
        const bytes = inflateBytes(opened.pages.subarray(start, start + length));
        hash.update(bytes);
        pages.push({ path, bytes });
      }
      parts.push({ path, segment, placed, hash: hash.digest('hex') });
    }
    return { pages, parts };
  }

  /**
   * Compares the pages and directory lines of a block with those of a block that was rendered again. Returns the size of the stored pages,
   * in bytes.
   */
  add(batch: Batch, block: BatchBlock, parts: readonly BlockPart[]): number {
    const { findings, site } = this.check;
    const limit = maximumLimit(site);
    const total = Math.ceil(block.records / limit);
    let [count, bytes] = [0, 0];
    for (const { path, segment, placed, hash: ofPages } of parts) {
      const wrong = (what: string) => findings.add(`${path} ${what} block ${block.height}`);
      const pages = { from: count, to: count + placed.pages.length };
      const rendered = createHash('sha256');
      for (; count < pages.to; count += 1) {
        const offset = count * limit;
        const end = Math.min(offset + limit, block.records);
        rendered.update(envelopeHead({ limit, offset }, block.records));
        rendered.update(sliceRecords(batch, block.first + offset, block.first + end)).update(ENVELOPE_TAIL);
        bytes += placed.pages[count - pages.from] ?? 0;
      }
      if (rendered.digest('hex') !== ofPages) wrong('has a wrong page of');
      const operations = countOperations(batch, block, limit, pages);
      const expected = { ...placed, hash: block.hash, records: block.records, page: pages.from, operations };
      if (renderEntry(placed) !== renderEntry(expected)) wrong('has a wrong line in its directory for');
      const sums = Object.entries(operations).map(([name, counts]) => [name, counts.reduce((sum, count) => sum + count, 0)]);
      const part = placed.pages.length === total ? undefined : { page: pages.from, operations: Object.fromEntries(sums) };
      if (JSON.stringify(segment.part) !== JSON.stringify(part)) wrong('has wrong counts in the root for');
    }
    if (count !== total) findings.add(`the archive has ${count} pages of block ${block.height}, expected ${total}`);
    this.#sizes.push({ first: block.height, last: block.height, bytes });
    return bytes;
  }

  /** Checks segments and root, which depend on all blocks. Call it after `add` of every block. */
  finish(): void {
    const { findings, site } = this.check;
    const { root, name } = this.archive;
    const rootPath = archivePath(name.root);
    const cuts = cut(this.#sizes, site.tip, root).map(({ first, last }) => `${first}-${last}`);
    const ranges = new Set(root.segments.map(({ first, last }) => `${first}-${last}`));
    if (cuts.join() !== [...ranges].join()) findings.add(`${rootPath} cuts the blocks into wrong segments`);
    if (root.pageSize !== maximumLimit(site)) findings.add(`${rootPath} has a wrong page size`);
    if (inflate(this.archive.read(name.root)) !== renderRoot(root)) findings.add(`${rootPath} is not a root that a build makes`);
  }
}
