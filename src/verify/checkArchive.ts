/**
 * Verifies the archive of a build (src/format). The content of every file must match its name. Root, directories and
 * lists must match the records. Compressed bytes are not compared, because they depend on the version of zlib.
 */
import type { BlockDigest } from '../contract/schemas.ts';
import { countOperations } from '../engine/render/blockSpool.ts';
import { inflate } from '../engine/render/compress.ts';
import { sliceRecords } from '../engine/render/recordBytes.ts';
import type { Batch, BatchBlock } from '../engine/render/servedOrder.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { cut } from '../format/cutSegments.ts';
import type { LevelRange } from '../format/levels.ts';
import { renderRoot } from '../format/root.ts';
import type { PlacedBlock, Segment } from '../format/segmentDirectory.ts';
import { ENVELOPE_TAIL, envelopeHead } from '../pages/envelope.ts';
import { archivePath } from '../pages/filePaths.ts';
import { maximumLimit } from '../pages/mirrorOptions.ts';
import type { ArchiveCheck } from './verification.ts';

interface StoredPage {
  /** Path of the segment. */
  readonly path: string;
  readonly text: string;
}

interface BlockPart {
  /** Path of the segment. */
  readonly path: string;
  readonly segment: Segment;
  /** Line of the block in the segment's directory. */
  readonly placed: PlacedBlock;
  /** The pages. */
  readonly texts: readonly string[];
}

/** Checks segments and root. */
export class ArchiveVerification {
  /** Maximum number of records in a page. */
  readonly #limit: number;
  #last: { readonly height: number; readonly parts: readonly BlockPart[] } | undefined;
  readonly #sizes: (LevelRange & { readonly bytes: number })[] = [];

  constructor(private readonly check: ArchiveCheck) {
    this.#limit = maximumLimit(check.site);
  }

  /** Returns a block's pages. Throws an error when a page is damaged. */
  pagesOf({ height }: BlockDigest): StoredPage[] {
    const pages: StoredPage[] = [];
    for (const { path, texts } of this.#partsOf(height)) for (const text of texts) pages.push({ path, text });
    return pages;
  }

  /**
   * Renders the pages and directory lines of a block again, and compares them with the stored ones. Returns the lengths
   * of the stored pages, in bytes.
   */
  add(batch: Batch, block: BatchBlock): number[] {
    const { findings } = this.check;
    const limit = this.#limit;
    const total = Math.ceil(block.records / limit);
    const lengths: number[] = [];
    for (const { path, segment, placed, texts } of this.#partsOf(block.height)) {
      const wrong = (what: string) => findings.add(`${path} ${what} block ${block.height}`);
      const from = lengths.length;
      for (const text of texts) {
        const offset = lengths.length * limit;
        const end = Math.min(offset + limit, block.records);
        const records = Buffer.from(sliceRecords(batch, block.first + offset, block.first + end)).toString('utf8');
        if (text !== envelopeHead({ limit, offset }, block.records) + records + ENVELOPE_TAIL) wrong('has a wrong page of');
        lengths.push(placed.pages[lengths.length - from] ?? 0);
      }
      const { hash, records, page: first = 0, operations } = placed;
      const expected = countOperations(batch, block, limit, { from, to: lengths.length });
      const isRight = hash === block.hash && records === block.records && first === from;
      if (!isRight || JSON.stringify(operations) !== JSON.stringify(expected)) wrong('has a wrong line in its directory for');
      const sums = Object.fromEntries(
        Object.entries(expected).map(([name, counts]) => [name, counts.reduce((sum, count) => sum + count, 0)]),
      );
      const part = placed.pages.length === total ? undefined : { page: from, operations: sums };
      if (JSON.stringify(segment.part) !== JSON.stringify(part)) wrong('has wrong counts in the root for');
    }
    if (lengths.length !== total) findings.add(`the archive has ${lengths.length} pages of block ${block.height}, expected ${total}`);
    this.#sizes.push({ first: block.height, last: block.height, bytes: lengths.reduce((sum, length) => sum + length, 0) });
    return lengths;
  }

  /** Checks segments and root, which depend on all blocks. Call it after `add` of every block. */
  finish(): void {
    const { findings, site, archive, rootPath } = this.check;
    const { root, name } = archive;
    const cuts = cut(this.#sizes, site.tip, root).map(({ first, last }) => `${first}-${last}`);
    const ranges = new Set(root.segments.map(({ first, last }) => `${first}-${last}`));
    if (cuts.join() !== [...ranges].join()) findings.add(`${rootPath} cuts the blocks into wrong segments`);
    if (root.pageSize !== this.#limit) findings.add(`${rootPath} has a wrong page size`);
    const text = inflate(archive.read(name.root));
    if (text !== renderRoot(root)) findings.add(`${rootPath} is not a root that a build makes`);
  }

  /** Returns the parts of a block. Throws an error when a segment is damaged. Keeps those of the last block. */
  #partsOf(height: number): readonly BlockPart[] {
    if (this.#last?.height !== height) this.#last = { height, parts: [...this.#read(height)] };
    return this.#last.parts;
  }

  *#read(height: number): Generator<BlockPart> {
    const { archive } = this.check;
    for (const segment of archive.root.segments) {
      if (height < segment.first || height > segment.last) continue;
      const { pages, blocks } = archive.segment(segment);
      const placed = blocks.get(height);
      if (placed === undefined) throw new ArchiveError(`the directory does not have block ${height}`);
      const texts = placed.pages.map((length, i) => inflate(pages.subarray(placed.offsets[i], (placed.offsets[i] ?? 0) + length)));
      yield { path: archivePath(segment.file), segment, placed, texts };
    }
  }
}
