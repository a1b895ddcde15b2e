/**
 * Compresses the pages of blocks for an archive. Each writer thread appends to a temporary file of its own, the spool: for each block its
 * pages, and then its line of the segment's directory. The blocks cannot be divided into the segments of the archive
 * (engine/archive/segmentWriter.ts) until the sizes of all blocks are known.
 */
import { closeSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { renderEntry } from '../../format/segmentDirectory.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { envelopeHead } from '../../pages/envelope.ts';
import { maximumLimit, type Site } from '../../pages/mirrorOptions.ts';
import { gzipMember } from './compress.ts';
import { PageBuffer } from './pageFiles.ts';
import { sliceRecords } from './recordBytes.ts';
import type { Batch, BatchBlock } from './servedOrder.ts';

/** Position of a block in a spool. All sizes are in bytes. */
export interface SpooledBlock {
  readonly file: string;
  readonly offset: number;
  /** Size of all pages. */
  readonly bytes: number;
  /** Size of each page. */
  readonly pages: readonly number[];
  /** Size of the directory line, which follows the pages. */
  readonly entry: number;
}

/** Counts the records of each operation in each page from `pages.from` to `pages.to - 1`. Omits operations without records. */
export function countOperations(
  batch: Batch,
  block: BatchBlock,
  limit: number,
  pages: { readonly from: number; readonly to: number },
): Record<string, number[]> {
  const counts = OPERATIONS.map(() => new Array<number>(pages.to - pages.from).fill(0));
  for (let i = pages.from * limit; i < Math.min(pages.to * limit, block.records); i += 1) {
    const ofOperation = counts[batch.operations[block.first + i] ?? -1];
    if (ofOperation === undefined) throw new Error(`record ${i} of block ${block.height} has no operation`);
    const page = Math.floor(i / limit) - pages.from;
    ofOperation[page] = (ofOperation[page] ?? 0) + 1;
  }
  const named = OPERATIONS.map((operation, code) => [operation, counts[code] ?? []] as const);
  return Object.fromEntries(named.filter(([, ofOperation]) => ofOperation.some((count) => count > 0)));
}

export class BlockSpool {
  readonly #handle: number;
  #offset = 0;
  readonly #page = new PageBuffer();

  /** Creates the file. Throws system errors. */
  constructor(private readonly file: string) {
    this.#handle = openSync(file, 'wx');
  }

  /** Compresses and appends a block. Throws a BuildError for a page that is too large, and system errors. */
  add(batch: Batch, block: BatchBlock, site: Site): SpooledBlock {
    const limit = maximumLimit(site);
    const members: Buffer[] = [];
    for (let offset = 0; offset < block.records; offset += limit) {
      const end = Math.min(offset + limit, block.records);
      const head = envelopeHead({ limit, offset }, block.records);
      members.push(gzipMember(this.#page.join(head, sliceRecords(batch, block.first + offset, block.first + end))));
    }
    const operations = countOperations(batch, block, limit, { from: 0, to: members.length });
    const { height, hash, records } = block;
    const pages = members.map(({ length }) => length);
    const entry = Buffer.from(renderEntry({ height, hash, records, pages, operations }));
    const bytes = pages.reduce((sum, length) => sum + length, 0);
    const place = { file: this.file, offset: this.#offset, bytes, pages, entry: entry.length };
    for (const content of [...members, entry]) {
      writeFileSync(this.#handle, content);
      this.#offset += content.length;
    }
    return place;
  }

  close(): void {
    closeSync(this.#handle);
  }
}

export class SpoolReader {
  readonly #handles = new Map<string, number>();

  /** Reads a part of a spool. Throws system errors. */
  read(file: string, offset: number, length: number): Buffer {
    const handle = this.#handles.get(file) ?? openSync(file, 'r');
    this.#handles.set(file, handle);
    const content = Buffer.allocUnsafe(length);
    for (let read = 0; read < length; ) {
      const bytes = readSync(handle, content, read, length - read, offset + read);
      if (bytes === 0) throw new Error(`${file} is too short`);
      read += bytes;
    }
    return content;
  }

  /** Closes and removes all spools that were read. */
  remove(): void {
    for (const [file, handle] of this.#handles) {
      closeSync(handle);
      rmSync(file);
    }
  }
}
