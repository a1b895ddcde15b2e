/**
 * From a batch of rendered records to the files of its lists. Paths and page sizes come from the page map; every body is one slice of
 * the batch's bytes, except that an operation's records have to be gathered.
 */
import { envelopeHead } from '../pages/envelope.ts';
import { OPERATIONS, type Site, spellHex } from '../pages/lists.ts';
import { blockStem, pagePath, pagesOf, stemOf } from '../pages/paths.ts';
import { type Batch, type BatchBlock, TX_ID_LENGTH } from './assembler.ts';
import { RecordBytes, type RecordSlices, sliceRecords } from './recordBytes.ts';

/** Where files go: to disk, or nowhere when only counting. Paths are those of pages/paths.ts. */
export interface FileSink {
  /** A page: `head`, then `records` (joined by commas), then the envelope's tail. */
  page(path: string, head: string, records: Uint8Array): void;
  /** The same file under a second path. */
  link(path: string, target: string): void;
}

/** Gives every file of one block of the batch, and of its transactions, to the sink. */
export function emitFiles(batch: Batch, block: BatchBlock, site: Site, sink: FileSink): void {
  let first = block.first;
  const ids = Buffer.from(batch.txIds.buffer, batch.txIds.byteOffset, batch.txIds.length);
  for (let i = block.firstTx; i < block.firstTx + block.transactions; i += 1) {
    const start = first;
    const records = batch.txRecords[i] ?? 0;
    const txId = ids.toString('latin1', i * TX_ID_LENGTH, (i + 1) * TX_ID_LENGTH);
    const stem = stemOf({ kind: 'transaction', txId }, site);
    emitList(stem, records, site, sink, (from, to) => sliceRecords(batch, start + from, start + to));
    first += records;
  }
  emitBlock(batch, block, site, sink);
}

function emitBlock(batch: Batch, block: BatchBlock, site: Site, sink: FileSink): void {
  const byHeight = blockStem(String(block.height));
  const byHash = blockStem(spellHex(block.hash, site.dialect));
  emitList(byHeight, block.records, site, sink, (from, to) => sliceRecords(batch, block.first + from, block.first + to));
  linkList(byHash, byHeight, block.records, site, sink);
  for (const [code, operation] of OPERATIONS.entries()) {
    const total = block.operations[code] ?? 0;
    if (total === 0) continue;
    const gathered = gather(batch, block, code);
    const stem = blockStem(String(block.height), operation);
    emitList(stem, total, site, sink, (from, to) => sliceRecords(gathered, from, to));
    linkList(blockStem(spellHex(block.hash, site.dialect), operation), stem, total, site, sink);
  }
}

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
function gather(batch: Batch, block: BatchBlock, code: number): RecordSlices {
  const end = block.first + block.records;
  let length = 0;
  for (let i = block.first; i < end; i += 1) {
    if (batch.operations[i] === code) length += (batch.offsets[i + 1] ?? 0) - (batch.offsets[i] ?? 0);
  }
  const chosen = new RecordBytes(block.operations[code] ?? 0, length);
  for (let i = block.first; i < end; i += 1) {
    if (batch.operations[i] === code) chosen.add(sliceRecords(batch, i, i + 1));
  }
  return chosen;
}
