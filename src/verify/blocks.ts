/**
 * Reads a block from its largest pages, into a batch like the batch that builds write pages from.
 */
import { z } from 'zod';
import { blockDigest, digestOfRecords } from '../contract/blockDigest.ts';
import type { envelope } from '../contract/schemas.ts';
import { messageOf } from '../errors.ts';
import type { BlockDigest } from '../output/digests.ts';
import { readPage } from '../pages/envelope.ts';
import { spellHex } from '../pages/ids.ts';
import { OPERATIONS } from '../pages/lists.ts';
import { blockStem, type PageId, pagePath, pagesOf } from '../pages/paths.ts';
import { maximumLimit, type Site } from '../pages/site.ts';
import { RecordBytes, sliceRecords } from '../render/recordBytes.ts';
import type { Batch } from '../render/servedOrder.ts';
import { readRegularFile } from '../write/regularFile.ts';
import type { ArchiveVerification } from './archive.ts';
import { type Findings, orFinding } from './findings.ts';

type Envelope = ReturnType<typeof envelope>;
export type Activity = z.infer<Envelope>['results'][number];

/** A block and its records, read from its pages. */
export interface ReadBlock {
  /** The block as input for the page writer. */
  readonly batch: Batch;
  /** The records of the block, in served order. */
  readonly records: readonly Activity[];
}

/** Reads all records of a block. If its pages are damaged, adds a finding and returns undefined. */
export function readBlock(
  root: string,
  site: Site,
  archive: ArchiveVerification | undefined,
  schema: Envelope,
  block: BlockDigest,
  findings: Findings,
): ReadBlock | undefined {
  const records: Activity[] = [];
  const bytes = new RecordBytes(block.records, block.records * 640);
  const pages = archive === undefined ? largestPages(block, site) : archivedPages(block, site);
  const texts = archive === undefined ? undefined : orFinding(findings, () => archive.pagesOf(block));
  if (archive !== undefined && texts === undefined) return undefined;
  for (const [i, [page, named]] of pages.entries()) {
    const path = texts?.[i]?.[0] ?? named;
    try {
      const text = texts === undefined ? readRegularFile(`${root}/${path}`).toString('utf8') : textOf(texts[i]);
      const { results, total, limit, offset } = schema.parse(JSON.parse(text));
      if (total !== block.records) throw new Error(`its total is ${total}, but the block has ${block.records} records`);
      if (limit !== page.limit || offset !== page.offset)
        throw new Error(`it has limit ${limit} and offset ${offset}, expected ${page.limit} and ${page.offset}`);
      if (results.length !== Math.min(limit, total - offset))
        throw new Error(`it has ${results.length} records, expected ${Math.min(limit, total - offset)}`);
      for (const record of readPage(text).records) bytes.add(Buffer.from(record));
      for (const record of results) records.push(record);
    } catch (error) {
      findings.add(`${path}: ${error instanceof z.ZodError ? firstIssue(error) : messageOf(error)}`);
      return undefined;
    }
  }
  const wrong = disorder(records, block, site);
  if (wrong !== undefined) {
    findings.add(`block ${block.height}: ${wrong}`);
    return undefined;
  }
  return { batch: toBatch(records, bytes, block, site), records };
}

/** Lists the pages of a block in an archive. */
function archivedPages({ height, records }: BlockDigest, site: Site): [page: PageId, path: string][] {
  const limit = maximumLimit(site);
  return Array.from({ length: Math.ceil(records / limit) }, (_, i) => [{ limit, offset: i * limit }, `block ${height}`]);
}

function textOf(page: readonly [path: string, text: string] | undefined): string {
  if (page === undefined) throw new Error('a page is missing in the archive');
  return page[1];
}

/** Lists the block's pages of the largest size. Together they have all of its records. */
function largestPages(block: BlockDigest, site: Site): [page: PageId, path: string][] {
  const stem = blockStem(String(block.height));
  const pages = pagesOf(block.records, site);
  const largest = pages.filter((page) => page.limit === maximumLimit(site));
  return (largest.length === 0 ? pages : largest).map((page) => [page, pagePath(stem, page, site)]);
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue === undefined ? 'does not match the contract' : `${issue.path.join('.')}: ${issue.message}`;
}

/** Describes the first record that belongs to another block or is not in served order. Undefined if there is none. */
function disorder(records: readonly Activity[], block: BlockDigest, site: Site): string | undefined {
  for (const [i, { location }] of records.entries()) {
    if (location.block_height !== block.height || location.block_hash !== spellHex(block.hash, site.dialect)) {
      return `record ${i} belongs to block ${location.block_height}, ${location.block_hash}`;
    }
    const before = records[i - 1]?.location;
    if (before === undefined) continue;
    const isSameTx = before.tx_id === location.tx_id;
    if (isSameTx !== (before.tx_index === location.tx_index) || before.tx_index < location.tx_index) {
      return `records ${i - 1} and ${i} are not in served order (tx_index ${before.tx_index}, then ${location.tx_index})`;
    }
  }
  return undefined;
}

function toBatch(records: readonly Activity[], bytes: RecordBytes, block: BlockDigest, site: Site): Batch {
  const txIds: string[] = [];
  const txRecords: number[] = [];
  const operations = Uint8Array.from(records, (record) => OPERATIONS.indexOf(record.operation));
  for (const [i, { location }] of records.entries()) {
    if (location.tx_id !== records[i - 1]?.location.tx_id) {
      txIds.push(location.tx_id.slice(-64));
      txRecords.push(0);
    }
    txRecords[txRecords.length - 1] = (txRecords.at(-1) ?? 0) + 1;
  }
  const whole = {
    ...block,
    first: 0,
    firstTx: 0,
    transactions: txIds.length,
    operations: OPERATIONS.map((_, code) => operations.filter((o) => o === code).length),
    digest: site.dialect === 'contract' ? blockDigest(sliceRecords(bytes, 0, records.length)) : digestOfRecords(records),
  };
  return {
    blocks: [whole],
    bytes: bytes.bytes,
    offsets: bytes.offsets,
    operations,
    txIds: Buffer.from(txIds.join(''), 'latin1'),
    txRecords: Uint32Array.from(txRecords),
  };
}
