/**
 * From a batch of rendered records to the files of its lists. Paths and page sizes come from the page map; every body is one slice of
 * the batch's bytes, except that an operation's records have to be gathered. In layout `packed` a block has pages of the largest size and
 * pointers, and its transactions have no files; their index is made when all blocks are done (pipeline/shards.ts).
 */
import { envelopeHead } from '../pages/envelope.ts';
import { type Encoding, OPERATIONS, type Operation, type Site } from '../pages/lists.ts';
import { renderPointer } from '../pages/packed.ts';
import {
  blockStem,
  editionName,
  encodingsOf,
  idName,
  packedPagePath,
  packedPagesOf,
  pagePath,
  pagesOf,
  pointerPath,
  stemOf,
} from '../pages/paths.ts';
import { RecordBytes, type RecordSlices, sliceRecords } from '../render/recordBytes.ts';
import { type Batch, type BatchBlock, TX_ID_LENGTH } from '../render/servedOrder.ts';

/** Where files go: to disk, or nowhere when only counting. Paths are those of pages/paths.ts. */
export interface FileSink {
  /** A page: `head`, then `records` (joined by commas), then the envelope's tail; and its compressed files. Returns the page's length. */
  page(path: string, head: string, records: Uint8Array, encodings: readonly Encoding[]): number;
  /** Any other file. */
  file(path: string, bytes: Uint8Array): void;
  /** The same file, of this length, under a second path; and its compressed files. */
  link(path: string, target: string, length: number, encodings: readonly Encoding[]): void;
}

/** Gives every file of one block of the batch, and of its transactions, to the sink. */
export function emitFiles(batch: Batch, block: BatchBlock, site: Site, sink: FileSink): void {
  if (site.layout === 'packed') {
    emitPacked(batch, block, site, sink);
    return;
  }
  let first = block.first;
  const ids = Buffer.from(batch.txIds.buffer, batch.txIds.byteOffset, batch.txIds.length);
  for (let i = block.firstTx; i < block.firstTx + block.transactions; i += 1) {
    const start = first;
    const records = batch.txRecords[i] ?? 0;
    const txId = ids.toString('latin1', i * TX_ID_LENGTH, (i + 1) * TX_ID_LENGTH);
    const stem = stemOf({ kind: 'transaction', txId }, site);
    emitList(stem, { total: records, slice: (from, to) => sliceRecords(batch, start + from, start + to) }, site, sink);
    first += records;
  }
  const [byHeight, byHash] = [String(block.height), idName(block.hash, site.dialect)];
  for (const [operation, list] of listsOf(batch, block, site)) {
    emitList(blockStem(byHeight, operation), list, site, sink, blockStem(byHash, operation));
  }
}

function emitPacked(batch: Batch, block: BatchBlock, site: Site, sink: FileSink): void {
  const edition = editionName(block.height, block.digest, site.dialect);
  for (const [operation, { total, slice }] of listsOf(batch, block, site)) {
    const stem = blockStem(edition, operation);
    for (const page of packedPagesOf(total, site)) {
      const records = slice(page.offset, Math.min(page.offset + page.limit, total));
      sink.page(packedPagePath(stem, page), envelopeHead(page, total), records, encodingsOf(page, total, site));
    }
  }
  // The pointers come last: whoever sees one finds its pages.
  const byHeight = pointerPath(String(block.height));
  const pointer = Buffer.from(renderPointer(block, edition, site.dialect));
  sink.file(byHeight, pointer);
  sink.link(pointerPath(idName(block.hash, site.dialect)), byHeight, pointer.length, []);
}

/** A list's records, by their numbers in it. */
interface List {
  readonly total: number;
  readonly slice: (from: number, to: number) => Uint8Array;
}

/** The lists of a block: all of its records, and those of each operation. */
function* listsOf(batch: Batch, block: BatchBlock, site: Site): Generator<[Operation | undefined, List]> {
  const { first, records } = block;
  yield [undefined, { total: records, slice: (from, to) => sliceRecords(batch, first + from, first + to) }];
  if (!site.operationPages) return;
  for (const [code, operation] of OPERATIONS.entries()) {
    const total = block.operations[code] ?? 0;
    if (total === 0) continue;
    const gathered = gather(batch, block, code);
    yield [operation, { total, slice: (from, to) => sliceRecords(gathered, from, to) }];
  }
}

/** Gives every page of a list to the sink, and the same under a second stem, if there is one. */
function emitList(stem: string, { total, slice }: List, site: Site, sink: FileSink, secondStem?: string): void {
  for (const page of pagesOf(total, site)) {
    const path = pagePath(stem, page, site);
    const encodings = encodingsOf(page, total, site);
    const records = slice(page.offset, Math.min(page.offset + page.limit, total));
    const length = sink.page(path, envelopeHead(page, total), records, encodings);
    if (secondStem !== undefined) sink.link(pagePath(secondStem, page, site), path, length, encodings);
  }
}

/** Where records are gathered: used again and again, because fresh memory costs more than copying into it. */
const gathered = new RecordBytes(0, 0);

/** The records of one operation of a block, copied together, laid out as in a batch. Good until the next are gathered. */
function gather(batch: Batch, block: BatchBlock, code: number): RecordSlices {
  gathered.clear();
  const end = block.first + block.records;
  for (let i = block.first; i < end; ) {
    let last = i;
    while (last < end && batch.operations[last] === code) last += 1;
    if (last > i) gathered.addFrom(batch, i, last);
    i = last + 1;
  }
  return gathered;
}
