/**
 * From a batch of rendered records to the files of its lists. Paths and page sizes come from the page map; every body is one slice of
 * the batch's bytes, except that an operation's records have to be gathered.
 */
import { envelopeHead } from '../pages/envelope.ts';
import { OPERATIONS, type Site, spellHex } from '../pages/lists.ts';
import { blockStem, pagePath, pagesOf, stemOf } from '../pages/paths.ts';
import type { Batch, BatchBlock } from './batches.ts';

/** Where files go: to disk, or nowhere when only counting. Paths are those of pages/paths.ts. */
export interface FileSink {
  /** A page: `head`, then `records` (joined by commas), then the envelope's tail. */
  page(path: string, head: string, records: Uint8Array): void;
  /** The same file under a second path. */
  link(path: string, target: string): void;
}

/** Gives every file of the batch to the sink. */
export function emitFiles(batch: Batch, site: Site, sink: FileSink): void {
  let first = 0;
  for (const [i, txId] of batch.txIds.entries()) {
    const records = batch.txRecords[i] ?? 0;
    const stem = stemOf({ kind: 'transaction', txId }, site);
    emitList(stem, records, site, sink, (from, to) => sliceRecords(batch.bytes, batch.offsets, first + from, first + to));
    first += records;
  }
  for (const block of batch.blocks) emitBlock(batch, block, site, sink);
}

function emitBlock(batch: Batch, block: BatchBlock, site: Site, sink: FileSink): void {
  const byHeight = blockStem(String(block.height));
  const byHash = blockStem(spellHex(block.hash, site.dialect));
  emitList(byHeight, block.records, site, sink, (from, to) =>
    sliceRecords(batch.bytes, batch.offsets, block.first + from, block.first + to),
  );
  linkList(byHash, byHeight, block.records, site, sink);
  for (const [code, operation] of OPERATIONS.entries()) {
    const { bytes, offsets } = gather(batch, block, code);
    const total = offsets.length - 1;
    if (total === 0) continue;
    const stem = blockStem(String(block.height), operation);
    emitList(stem, total, site, sink, (from, to) => sliceRecords(bytes, offsets, from, to));
    linkList(blockStem(spellHex(block.hash, site.dialect), operation), stem, total, site, sink);
  }
}

/** Records `from` up to, not including, `to`, without the comma after the last. */
const sliceRecords = (bytes: Uint8Array, offsets: ArrayLike<number>, from: number, to: number): Uint8Array =>
  bytes.subarray(offsets[from], Math.max((offsets[to] ?? 0) - 1, offsets[from] ?? 0));

type Slice = (from: number, to: number) => Uint8Array;

function emitList(stem: string, total: number, site: Site, sink: FileSink, slice: Slice): void {
  for (const page of pagesOf(total, site)) {
    const records = slice(page.offset, Math.min(page.offset + page.limit, total));
    sink.page(pagePath(stem, page, site), envelopeHead(page, total), records);
  }
}

function linkList(stem: string, target: string, total: number, site: Site, sink: FileSink): void {
  for (const page of pagesOf(total, site)) sink.link(pagePath(stem, page, site), pagePath(target, page, site));
}

/** The records of one operation of a block, copied together, laid out as in a batch. */
function gather(batch: Batch, block: BatchBlock, code: number): { bytes: Uint8Array; offsets: number[] } {
  const chosen: number[] = [];
  let length = 0;
  for (let i = block.first; i < block.first + block.records; i += 1) {
    if (batch.operations[i] !== code) continue;
    chosen.push(i);
    length += (batch.offsets[i + 1] ?? 0) - (batch.offsets[i] ?? 0);
  }
  const bytes = new Uint8Array(length);
  const offsets = [0];
  let at = 0;
  for (const i of chosen) {
    const record = batch.bytes.subarray(batch.offsets[i], batch.offsets[i + 1]);
    bytes.set(record, at);
    at += record.length;
    offsets.push(at);
  }
  return { bytes, offsets };
}
