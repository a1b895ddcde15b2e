/** Answers requests for lists in layout `archive`: finds the block, and cuts the window out of the block's pages. */
import type { Archive, ArchivedBlock, StoredPage } from '../format/archiveReader.ts';
import { findIds, type IdEntry } from '../format/ids.ts';
import type { ActivityList, Operation } from './blockAndTransactionLists.ts';
import { beginsSettled, cutRecords, readPage, txIdOf, type WindowAnswer, windowAnswer } from './envelope.ts';
import type { BuiltSite } from './mirrorOptions.ts';
import { isHeight, spellHex } from './parseIds.ts';
import type { Window } from './parseQuery.ts';

/** Answers a request for a list. Rejects with an ArchiveError when a file is missing or damaged. */
export async function windowOf(list: ActivityList, window: Window, site: BuiltSite, archive: Archive): Promise<WindowAnswer> {
  if (list.kind === 'transaction') return windowOfTransaction(list.txId, window, site, archive);
  const block = await findBlock(list.block, window, archive);
  if (block === undefined) return windowAnswer(window, 0, '', site);
  return list.operation === undefined
    ? windowOfBlock(block, window, site, archive)
    : windowOfOperation(block, list.operation, window, site);
}

/** Finds a block by its height or hash. If the block is in several files, opens the file with the page where the window begins. */
async function findBlock(id: string, window: Window, archive: Archive): Promise<ArchivedBlock | undefined> {
  const page = Math.floor(window.offset / archive.root.pageSize);
  if (isHeight(id)) return archive.block(Number(id), page);
  const entries = await findIds(archive, id);
  const blocks = await Promise.all(entries.filter(isBlock).map(({ height }) => archive.block(height, page)));
  return blocks.find((block) => block?.hash === id);
}

/** True for the entry of a block, whose `count` is 0. The `count` of a transaction is at least 1. */
const isBlock = ({ count }: IdEntry): boolean => count === 0;

async function windowOfBlock(block: ArchivedBlock, window: Window, site: BuiltSite, archive: Archive): Promise<WindowAnswer> {
  const { limit, offset } = window;
  const pages = await pagesAt(block, offset, Math.min(offset + limit, block.records), archive);
  const [first] = pages;
  if (first !== undefined && limit === archive.root.pageSize && offset % limit === 0)
    return { kind: 'window', body: first.text, gzip: first.gzip, isSettled: beginsSettled(first.text, site) };
  return windowAnswer(window, block.records, cutPages(pages, offset % archive.root.pageSize, limit), site);
}

/** Reads the pages that have the records `from` to `to - 1` of a block. */
function pagesAt(block: ArchivedBlock, from: number, to: number, { root: { pageSize } }: Archive): Promise<StoredPage[]> {
  if (from >= to) return Promise.resolve([]);
  const first = Math.floor(from / pageSize);
  return block.pages(Array.from({ length: Math.ceil(to / pageSize) - first }, (_, i) => first + i));
}

/** Cuts `count` records out of consecutive pages, from record `from` of the first page on. */
function cutPages(pages: readonly StoredPage[], from: number, count: number): string {
  const parts: string[] = [];
  let [skipped, missing] = [from, count];
  for (const { text } of pages) {
    const cut = cutRecords(text, skipped, missing);
    if (cut.count > 0) parts.push(cut.text);
    missing -= cut.count;
    skipped = 0;
  }
  return parts.join(',');
}

async function windowOfOperation(block: ArchivedBlock, operation: Operation, window: Window, site: BuiltSite): Promise<WindowAnswer> {
  const total = block.total(operation);
  const end = Math.min(window.offset + window.limit, total);
  if (window.offset >= end) return windowAnswer(window, total, '', site);
  const { numbers, before } = await block.pagesWith(operation, window.offset, end);
  const pages = await block.pages(numbers);
  const hits = pages.flatMap(({ text }) => readPage(text).records.filter((record) => record.includes(`"operation":"${operation}"`)));
  return windowAnswer(window, total, hits.slice(window.offset - before, end - before).join(','), site);
}

async function windowOfTransaction(txId: string, window: Window, site: BuiltSite, archive: Archive): Promise<WindowAnswer> {
  const spelled = spellHex(txId, site.dialect);
  const entries = (await findIds(archive, txId)).filter((entry) => !isBlock(entry));
  const entry = entries.length > 1 ? await entryAmong(entries, spelled, archive) : entries[0];
  if (entry === undefined) return windowAnswer(window, 0, '', site);
  const { height, first, count } = entry;
  const from = first + Math.min(window.offset, count);
  // Reads a record even for a window past the end. The entry has only a part of the tx id, so only a record shows that its transaction is
  // the requested one.
  const at = window.offset < count ? from : first;
  const records = Math.min(window.limit, first + count - at);
  const block = await archive.block(height, Math.floor(at / archive.root.pageSize));
  if (block === undefined) return windowAnswer(window, 0, '', site);
  const cut = cutPages(await pagesAt(block, at, at + records, archive), at % archive.root.pageSize, records);
  if (txIdOf(cut) !== spelled) return windowAnswer(window, 0, '', site);
  return windowAnswer(window, count, at === from ? cut : '', site);
}

/** Finds the entry of a transaction among entries with the same key. */
async function entryAmong(entries: readonly IdEntry[], spelled: string, archive: Archive): Promise<IdEntry | undefined> {
  for await (const [entry, record] of firstRecords(entries, archive)) if (txIdOf(record) === spelled) return entry;
  return undefined;
}

/**
 * Yields the entries of transactions in the order of the chain, each with the text of its first record. Reads each page once, and keeps
 * only one page in memory. Rejects with an ArchiveError when a file is missing or damaged.
 */
export async function* firstRecords(
  entries: readonly IdEntry[],
  archive: Archive,
): AsyncGenerator<readonly [entry: IdEntry, record: string]> {
  const { pageSize } = archive.root;
  let [height, page, records]: [number, number, readonly string[]] = [-1, -1, []];
  for (const entry of [...entries].sort((a, b) => a.height - b.height || a.first - b.first)) {
    const number = Math.floor(entry.first / pageSize);
    if (entry.height !== height || number !== page) {
      [height, page] = [entry.height, number];
      const [found] = (await (await archive.block(height, page))?.pages([page])) ?? [];
      records = found === undefined ? [] : readPage(found.text).records;
    }
    yield [entry, records[entry.first % pageSize] ?? ''];
  }
}
