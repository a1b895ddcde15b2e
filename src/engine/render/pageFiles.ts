/** Converts a batch of rendered records to the page files of its lists. The records of a page are a slice of the batch's bytes. */
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';
import { ENVELOPE_TAIL, envelopeHead } from '../../pages/envelope.ts';
import { blockStem, idName, pagePath, pagesOf, stemOf } from '../../pages/filePaths.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { RecordBytes, type RecordSlices, sliceRecords } from './recordBytes.ts';
import { type Batch, type BatchBlock, TX_ID_LENGTH } from './servedOrder.ts';

/** Receives files, to write or to compare them. Paths are relative to the output folder (pages/filePaths.ts). */
export interface FileSink {
  /** Receives a page: `head`, `records` (joined by commas) and the envelope's tail. */
  page(path: string, head: string, records: Uint8Array): void;
  /** Receives a file that is not a page. */
  file(path: string, bytes: Uint8Array): void;
  /** Makes the page at `target` available at a second path, too. */
  link(path: string, target: string): void;
}

/** Joins the parts of a page in one buffer, because allocating memory for each page costs more than copying. */
export class PageBuffer {
  #bytes = Buffer.allocUnsafeSlow(1 << 16);

  /** Returns a page: `head`, `records` (joined by commas) and the envelope's tail. The next call overwrites it. */
  join(head: string, records: Uint8Array): Buffer {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    if (length > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(length * 2);
    this.#bytes.write(head, 0, 'latin1');
    this.#bytes.set(records, head.length);
    this.#bytes.write(ENVELOPE_TAIL, length - ENVELOPE_TAIL.length, 'latin1');
    return this.#bytes.subarray(0, length);
  }
}

/** Totals of files. A hard link counts as a file, because clients see two files. */
export interface FileTotals {
  files: number;
  bytes: number;
}

/** Passes all files of a block and of its transactions to the sink, if there is one. Returns their totals. */
export function emitFiles(batch: Batch, block: BatchBlock, site: Site, sink: FileSink | undefined): FileTotals {
  const totals = { files: 0, bytes: 0 };
  let first = block.first;
  const ids = Buffer.from(batch.txIds.buffer, batch.txIds.byteOffset, batch.txIds.length);
  for (let i = block.firstTx; i < block.firstTx + block.transactions; i += 1) {
    const records = batch.txRecords[i] ?? 0;
    const txId = ids.toString('latin1', i * TX_ID_LENGTH, (i + 1) * TX_ID_LENGTH);
    const stem = stemOf({ kind: 'transaction', txId }, site);
    emitList(stem, { total: records, records: batch, first }, site, sink, totals);
    first += records;
  }
  const [byHeight, byHash] = [String(block.height), idName(block.hash, site.dialect)];
  for (const [operation, total] of listsOf(block, site)) {
    const records = operation === undefined ? batch : gather(batch, block, OPERATIONS.indexOf(operation));
    const list = { total, records, first: operation === undefined ? block.first : 0 };
    emitList(blockStem(byHeight, operation), list, site, sink, totals, blockStem(byHash, operation));
  }
  return totals;
}

/** A list: `total` records, from the record `first` on. */
interface List {
  readonly records: RecordSlices;
  readonly first: number;
  readonly total: number;
}

/** Returns the number of records in each list of a block: first of all records, then of each operation that occurs. */
export function listsOf(
  { records, operations }: Pick<BatchBlock, 'records' | 'operations'>,
  site: Site,
): [operation: Operation | undefined, total: number][] {
  const byOperation = OPERATIONS.map((operation, code): [Operation, number] => [operation, operations[code] ?? 0]);
  return [[undefined, records], ...(site.operationPages ? byOperation.filter(([, total]) => total > 0) : [])];
}

/** Passes the pages of a list to the sink, and adds them to `totals`. With `secondStem`, each page gets a second path. */
function emitList(
  stem: string,
  { records, first, total }: List,
  site: Site,
  sink: FileSink | undefined,
  totals: FileTotals,
  secondStem?: string,
): void {
  for (const page of pagesOf(total, site)) {
    const path = pagePath(stem, page, site);
    const bytes = sliceRecords(records, first + page.offset, first + Math.min(page.offset + page.limit, total));
    const head = envelopeHead(page, total);
    sink?.page(path, head, bytes);
    if (secondStem !== undefined) sink?.link(pagePath(secondStem, page, site), path);
    const copies = secondStem === undefined ? 1 : 2;
    totals.files += copies;
    totals.bytes += copies * (head.length + bytes.length + ENVELOPE_TAIL.length);
  }
}

/** Buffer of `gather`, reused because allocating memory costs more than copying the records. */
const gathered = new RecordBytes(0, 0);

/** Copies the records of an operation of a block, which are not consecutive, into one buffer. The next call overwrites the result. */
function gather(batch: Batch, block: BatchBlock, code: number): RecordSlices {
  gathered.clear();
  const { offsets, bytes } = batch;
  const records: Parameters<RecordBytes['add']>[0] = {
    offsets,
    copyTo: (target, at, from, to) => target.set(bytes.subarray(offsets[from], offsets[to]), at),
  };
  const end = block.first + block.records;
  for (let i = block.first; i < end; ) {
    let last = i;
    while (last < end && batch.operations[last] === code) last += 1;
    if (last > i) gathered.add(records, i, last);
    i = last + 1;
  }
  return gathered;
}
