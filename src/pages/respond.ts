/**
 * The page map: answers a request target from the files of a build. Uses no platform API, so that each host (Node, edge functions, workers)
 * needs only a few lines to adapt it.
 */
import { isArchiveError } from '../format/archiveError.ts';
import { Archive, type RootName } from '../format/archiveReader.ts';
import { PartCache } from '../format/partCache.ts';
import { exceeds, READER_LIMITS } from '../limits.ts';
import type { ActivityList } from './blockAndTransactionLists.ts';
import { blockHashOf, blockHeightOf, PageFormatError, type ReadPage, readPage, type WindowAnswer, windowAnswer } from './envelope.ts';
import { type Files, MissingFileError, type OpenFile } from './fileAccess.ts';
import { ARCHIVE_FOLDER, archivePath, pagePath, STATUS_PATH, stemOf } from './filePaths.ts';
import { type BuiltSite, isSettled, maximumLimit } from './mirrorOptions.ts';
import { type AnswerFromLists, absentPart, type FurtherRequest, type ReadTransaction } from './optionalEndpoints.ts';
import { spellHex } from './parseIds.ts';
import type { Window } from './parseQuery.ts';
import { parseTarget } from './parseRequest.ts';
import { windowOf } from './windowFromArchive.ts';
import { fallbackPage, firstRead, isPage, secondRead } from './windowToPages.ts';

/** A file of the build, to be sent unchanged. */
export interface PageAnswer<File extends OpenFile> {
  readonly kind: 'page';
  readonly page: File;
  readonly isSettled: boolean;
}

/**
 * An error: 400 for an invalid request, 404 if the rune or holder does not exist, 501 if this mirror lacks the requested part of the API.
 * With `isBare`, the host sends the short error body of Hiro's server.
 */
export interface Refusal {
  readonly kind: 'refusal';
  readonly status: 400 | 404 | 501;
  readonly message: string;
  readonly isBare?: boolean;
}

export type Answer<File extends OpenFile> =
  | PageAnswer<File>
  | WindowAnswer
  | Refusal
  /** The path is not in the API. It may be a file of the build or of the host. */
  | { readonly kind: 'other' };

/**
 * Answers a request. `target` is its path and query. `lists` answers from lists of an archive (lists/answers.ts), and `cache` keeps parts
 * of the archive between requests. Rejects with a MissingFileError when a required file is missing or incomplete, and with the host's error
 * when a file cannot be read.
 */
export async function respond<File extends OpenFile>(
  target: string,
  site: BuiltSite,
  files: Files<File>,
  lists: AnswerFromLists,
  cache = new PartCache(),
): Promise<Answer<File>> {
  const route = parseTarget(target, site);
  if (route.kind === 'outside' || route.kind === 'unknown') return { kind: 'other' };
  if (route.kind === 'refusal') return { kind: 'refusal', status: 400, message: route.message };
  if (route.kind === 'absent') return { kind: 'refusal', status: 501, message: route.message };
  if (route.kind === 'status') {
    const page = await files.open(STATUS_PATH);
    if (page === undefined) throw new MissingFileError(STATUS_PATH);
    return { kind: 'page', page, isSettled: false };
  }
  if (route.kind === 'further') return answerFurther(route, site, files, lists, cache);
  return site.archive === undefined
    ? answerList(route.list, route.window, site, files)
    : fromArchive(site.archive, files, cache, (archive) => windowOf(route.list, route.window, site, archive));
}

/** Answers from an archive. Rejects with a MissingFileError when a file of the archive is missing or damaged. */
async function fromArchive<File extends OpenFile, Result>(
  name: RootName,
  files: Files<File>,
  cache: PartCache,
  answer: (archive: Archive) => Promise<Result>,
): Promise<Result> {
  const read = (file: string, offset: number, length: number, size: number) => files.read(archivePath(file), offset, length, size);
  const inflate = (member: Uint8Array, most: number) => files.inflate(member, most);
  try {
    return await answer(await Archive.open(name, { read, inflate, nearBytes: files.nearBytes }, cache));
  } catch (error) {
    throw isArchiveError(error) ? new MissingFileError(ARCHIVE_FOLDER, `cannot be read: ${error.message}`) : error;
  }
}

export const NO_RUNE = 'there is no such rune';
export const NO_HOLDER = 'there is no such rune, or the address never had any of it';

async function answerFurther<File extends OpenFile>(
  request: FurtherRequest,
  site: BuiltSite,
  files: Files<File>,
  lists: AnswerFromLists,
  cache: PartCache,
): Promise<Answer<File>> {
  const { part, rune, address } = request;
  if (site.listRoot === undefined) return { kind: 'refusal', status: 501, message: absentPart(part, site) };
  const body = await fromLists(site.listRoot, site, files, cache, (archive, read) => lists(request, site.dialect, archive, read));
  // These answers change with every block, so no CDN may cache them for long.
  const isOlder = part === 'holders' && typeof body === 'string' && body.startsWith('{"block_height":');
  if (typeof body === 'string') return { kind: 'window', body, isSettled: false, ...(isOlder ? {} : { height: site.tip }) };
  const message = rune !== undefined && address === undefined ? NO_RUNE : NO_HOLDER;
  return { kind: 'refusal', status: 404, message, isBare: site.dialect === 'hiro' };
}

/** Runs `work` on the archive that has the mirror's lists. Rejects with a MissingFileError for missing or damaged files. */
export function fromLists<File extends OpenFile, Result>(
  root: RootName,
  site: BuiltSite,
  files: Files<File>,
  cache: PartCache,
  work: (archive: Archive, readTransaction: ReadTransaction) => Promise<Result>,
): Promise<Result> {
  return fromArchive(root, files, cache, (archive) =>
    work(archive, (txId) =>
      site.archive === undefined ? transactionInFiles(txId, site, files, archive) : transactionInArchive(txId, site, archive),
    ),
  );
}

async function transactionInArchive(txId: string, site: BuiltSite, archive: Archive) {
  const window = { offset: 0, limit: READER_LIMITS.transactionPages * maximumLimit(site) };
  return readWhole((await windowOf({ kind: 'transaction', txId }, window, site, archive)).body, ARCHIVE_FOLDER);
}

/**
 * Reads a transaction's records from pages. `archive` has the mirror's lists. Rejects with a MissingFileError if the block hash in a page
 * differs from the hash of this block in `archive`: then page and archive are of different builds.
 */
async function transactionInFiles<File extends OpenFile>(txId: string, site: BuiltSite, files: Files<File>, archive: Archive) {
  const list: ActivityList = { kind: 'transaction', txId };
  const stem = stemOf(list, site);
  const read = async (window: Window): Promise<ReadPage> => {
    const answer = await answerList(list, window, site, files);
    return readWhole(answer.kind === 'page' ? await answer.page.text() : answer.body, pagePath(stem, window, site));
  };
  const first = await read(fallbackPage(site));
  const [record] = first.records;
  if (record === undefined) return first;
  const block = await archive.block(blockHeightOf(record) ?? -1);
  const isOfBuild = block !== undefined && spellHex(block.hash, site.dialect) === blockHashOf(record);
  if (!isOfBuild) throw new MissingFileError(`${stem}.json`, 'belongs to another build than the lists');
  const limit = maximumLimit(site);
  const count = Math.ceil(first.total / limit);
  if (first.records.length === first.total || exceeds(READER_LIMITS, 'transactionPages', count)) return first;
  const pages = await Promise.all(Array.from({ length: count }, (_, i) => read({ limit, offset: i * limit })));
  if (!pages.every((page) => areOfOneList(first, page)))
    throw new MissingFileError(`${stem}.json`, 'belongs to another build than the other pages');
  return { total: first.total, records: pages.flatMap(({ records }) => records) };
}

/** The window of a page, and the block height of its first record, if it has any. */
interface PageFacts extends Window {
  readonly height: number | undefined;
}

/** Facts of pages that a host keeps open. Cached, because splitting a page into records takes time. */
const knownFacts = new WeakMap<OpenFile, PageFacts>();

/** Rejects with a MissingFileError when the page is incomplete, because a build is writing it or was killed. */
export async function readFacts(page: OpenFile, path: string): Promise<PageFacts> {
  const known = knownFacts.get(page);
  if (known !== undefined) return known;
  const { limit, offset, records } = readWhole(await page.text(), path);
  const facts = { limit, offset, height: blockHeightOf(records[0] ?? '') };
  knownFacts.set(page, facts);
  return facts;
}

async function answerList<File extends OpenFile>(
  list: ActivityList,
  window: Window,
  site: BuiltSite,
  files: Files<File>,
): Promise<PageAnswer<File> | WindowAnswer> {
  const stem = stemOf(list, site);
  const pathOf = (id: Window) => pagePath(stem, id, site);
  const check = (found: Window, id: Window) => {
    if (found.limit !== id.limit || found.offset !== id.offset)
      throw new MissingFileError(pathOf(id), 'belongs to a build with other page sizes');
  };
  const read = async (id: Window): Promise<ReadPage | undefined> => {
    const page = await files.open(pathOf(id));
    if (page === undefined) return undefined;
    const found = readWhole(await page.text(), pathOf(id));
    check(found, id);
    return found;
  };

  const first = firstRead(window, site);
  const isFile = isPage(window, site);
  const page = isFile ? await files.open(pathOf(first)) : undefined;
  if (page !== undefined) {
    const facts = await readFacts(page, pathOf(first));
    check(facts, first);
    return { kind: 'page', page, isSettled: facts.height !== undefined && isSettled(facts.height, site) };
  }
  const found = isFile ? undefined : await read(first);
  if (found !== undefined) {
    const second = secondRead(window, first, found.total);
    if (second === undefined) return slice(window, found, site);
    const rest = await read(second);
    if (rest === undefined) throw new MissingFileError(pathOf(second));
    if (!areOfOneList(found, rest)) throw new MissingFileError(pathOf(second), 'belongs to another build than the previous page');
    // If the list has the same total and block in two builds, the check cannot tell their pages apart. So the pages may still be from two
    // builds, and no CDN may cache this answer for long.
    return { ...slice(window, { ...found, records: [...found.records, ...rest.records] }, site), isSettled: false };
  }
  // The page for the window does not exist. Then either the first page has the complete list, or the total of the first page shows that the
  // list ends before the window. Without a first page, the list does not exist.
  const fallback = fallbackPage(site);
  const start = pathOf(first) === pathOf(fallback) ? undefined : await read(fallback);
  if (start === undefined) return windowAnswer(window, 0, '', site);
  if (start.total > window.offset && start.total > start.records.length) throw new MissingFileError(pathOf(first));
  return slice(window, start, site);
}

/** Splits a page into records. Throws a MissingFileError when the page is incomplete. */
function readWhole(text: string, path: string): ReadPage {
  try {
    return readPage(text);
  } catch (error) {
    throw error instanceof PageFormatError ? new MissingFileError(path, 'is not a complete page') : error;
  }
}

/**
 * True when two pages may be of the same build: they have the same total, and their first records are in the same block. A later build may
 * correct records without a change of total and block, so pages of two builds may also pass.
 */
const areOfOneList = (a: ReadPage, b: ReadPage): boolean =>
  a.total === b.total && blockHashOf(a.records[0] ?? '') === blockHashOf(b.records[0] ?? '');

/** Cuts the window out of `read`. The records of `read` must begin at or before the window. */
function slice(window: Window, read: ReadPage, site: BuiltSite): WindowAnswer {
  const from = window.offset - read.offset;
  return windowAnswer(window, read.total, read.records.slice(from, from + window.limit).join(','), site);
}
