/** Reads a block from its pages of the largest size. Returns it as a batch, the form in which builds render pages. */
import type { z } from 'zod';
import { blockDigest, digestOfRecords } from '../contract/blockDigest.ts';
import { type BlockDigest, misfitOf } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { RecordBytes, sliceRecords } from '../engine/render/recordBytes.ts';
import type { Batch, BatchBlock } from '../engine/render/servedOrder.ts';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import { readPage } from '../pages/envelope.ts';
import { blockStem, digestsPath, pagePath, pagesOf } from '../pages/filePaths.ts';
import { maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import { spellHex } from '../pages/parseIds.ts';
import type { Window } from '../pages/parseQuery.ts';
import type { ArchiveVerification } from './checkArchive.ts';
import { orFinding } from './findings.ts';
import type { Verification } from './verification.ts';

type Activity = z.infer<Verification['schema']>['results'][number];

/** A block and its records, read from its pages. */
export interface ReadBlock {
  /** The block as input for the page writer. */
  readonly batch: Batch;
  readonly found: BatchBlock;
  /** The JSON of the block's records, in served order. */
  readonly records: readonly string[];
}

/** Reads all records of a block. If its pages are damaged, adds a finding and returns undefined. */
export function readBlock(
  { root, site, schema, findings }: Verification,
  archive: ArchiveVerification | undefined,
  block: BlockDigest,
): ReadBlock | undefined {
  const records: Activity[] = [];
  const texts: string[] = [];
  const bytes = new RecordBytes(block.records, block.records * 640);
  const stored = site.layout === 'files' ? [] : orFinding(findings, () => archive?.pagesOf(block));
  if (stored === undefined) return undefined;
  for (const [i, page] of largestPages(block, site).entries()) {
    const path =
      site.layout === 'files' ? pagePath(blockStem(String(block.height)), page, site) : (stored[i]?.path ?? `block ${block.height}`);
    try {
      const text = site.layout === 'files' ? readRegularFile(`${root}/${path}`).toString('utf8') : stored[i]?.text;
      if (text === undefined) throw new Error('a page is missing in the archive');
      const { results, total, limit, offset } = schema.parse(JSON.parse(text));
      if (total !== block.records) throw new Error(`its total is ${total}, but the block has ${block.records} records`);
      if (limit !== page.limit || offset !== page.offset)
        throw new Error(`it has limit ${limit} and offset ${offset}, expected ${page.limit} and ${page.offset}`);
      if (results.length !== Math.min(limit, total - offset))
        throw new Error(`it has ${results.length} records, expected ${Math.min(limit, total - offset)}`);
      for (const record of readPage(text).records) {
        bytes.add(Buffer.from(record));
        texts.push(record);
      }
      for (const record of results) records.push(record);
    } catch (error) {
      findings.add(`${path}: ${misfitOf(error)}`);
      return undefined;
    }
  }
  const wrong = disorder(records, block, site);
  if (wrong !== undefined) {
    findings.add(`block ${block.height}: ${wrong}`);
    return undefined;
  }
  return { ...toBatch(records, bytes, block, site), records: texts };
}

/** Lists the block's pages of the largest size, which together have all of its records. */
function largestPages({ records }: BlockDigest, site: Site): Window[] {
  const limit = maximumLimit(site);
  if (site.layout === 'archive') return Array.from({ length: Math.ceil(records / limit) }, (_, i) => ({ limit, offset: i * limit }));
  const pages = pagesOf(records, site);
  const largest = pages.filter((page) => page.limit === limit);
  return largest.length === 0 ? pages : largest;
}

/** Describes the first record that belongs to another block or is not in served order. Undefined if there is none. */
function disorder(records: readonly Activity[], block: BlockDigest, site: Site): string | undefined {
  for (const [i, { location }] of records.entries()) {
    const hash = spellHex(block.hash, site.dialect);
    if (location.block_height !== block.height || location.block_hash !== hash)
      return `record ${i} belongs to block ${location.block_height}, ${location.block_hash}, but ${digestsPath(block.height)} has ${hash}`;
    const before = records[i - 1]?.location;
    if (before === undefined) continue;
    const isSameTx = before.tx_id === location.tx_id;
    if (isSameTx !== (before.tx_index === location.tx_index) || before.tx_index < location.tx_index)
      return `records ${i - 1} and ${i} are not in served order (tx_index ${before.tx_index}, then ${location.tx_index})`;
  }
  return undefined;
}

function toBatch(records: readonly Activity[], bytes: RecordBytes, block: BlockDigest, site: Site): Pick<ReadBlock, 'batch' | 'found'> {
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
  const found = {
    ...block,
    first: 0,
    firstTx: 0,
    transactions: txIds.length,
    operations: OPERATIONS.map((_, code) => operations.filter((o) => o === code).length),
    digest: site.dialect === 'contract' ? blockDigest(sliceRecords(bytes, 0, records.length)) : digestOfRecords(records),
  };
  const batch = {
    blocks: [found],
    bytes: bytes.bytes,
    offsets: bytes.offsets,
    operations,
    txIds: Buffer.from(txIds.join(''), 'latin1'),
    txRecords: Uint32Array.from(txRecords),
  };
  return { batch, found };
}
