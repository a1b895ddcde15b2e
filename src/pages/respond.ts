/**
 * The whole request side in one function, without a platform: a target and a way to read files go in, an answer comes out.
 * Hosts (Node, edge functions, workers) are adapters of a few lines around it.
 */
import {
  blockHashOf,
  blockHeightOf,
  cutRecords,
  factsOf,
  type PageFacts,
  PageFormatError,
  type ReadPage,
  readPage,
  renderEnvelope,
} from './envelope.ts';
import { type ActivityList, type BuiltSite, isSettled } from './lists.ts';
import { findEntry, pagesOfRun, type Run, readPointer } from './packed.ts';
import { blockName, blockStem, type PageId, packedPagePath, pagePath, pointerPath, STATUS_PATH, shardPath, stemOf } from './paths.ts';
import { parseTarget, type Window } from './request.ts';
import { exactPage, fallbackPage, firstRead, secondRead } from './window.ts';

/** A file of a build that was opened. */
export interface OpenFile {
  /**
   * The content. ASCII characters stand for themselves; a host may decode the others as it likes, because a body is only ever cut at ASCII characters,
   * and the host encodes it in the same way.
   */
  text(): Promise<string>;
  /** Releases a file that will not be read; left out where an open file holds nothing. */
  close?(): Promise<void>;
}

/**
 * Opens a file of a build by its path, `runes/v1/...`. The only way in which the page map reads files: each host has its own. Resolves to undefined when
 * there is no such file, and rejects when that could not be found out. The type of an opened file is the host's own, so the host can send a page as it is.
 */
export interface Files<File extends OpenFile> {
  open(path: string): Promise<File | undefined>;
}

/**
 * Reads a pointer or a file of the index (layout `packed`). A host may answer from memory for a while: the pages that an old index names are there
 * until they are removed, and then missing, never others.
 */
export type ReadIndex = (path: string) => Promise<string | undefined>;

/**
 * A file that has to be there is not, or is of another build than what was read with it: the build is being replaced at this moment, or is not
 * whole. The request may be tried again.
 */
export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
  constructor(path: string, what = 'is missing from the build') {
    super(`${path} ${what}`);
  }
}

/** A file of the build, to be sent as it is. */
interface PageAnswer<File extends OpenFile> {
  readonly kind: 'page';
  readonly page: File;
  readonly path: string;
  readonly isSettled: boolean;
}

/** A body that was put together from the texts of files: its characters stand for the same bytes as theirs. */
interface WindowAnswer {
  readonly kind: 'window';
  readonly body: string;
  readonly isSettled: boolean;
}

export type Answer<File extends OpenFile> =
  | PageAnswer<File>
  | WindowAnswer
  /** The request breaks a rule of the API, which `message` says. */
  | { readonly kind: 'refusal'; readonly message: string }
  /** The path is none of the API's: it may be a file of the build, or of the host. */
  | { readonly kind: 'other' };

/**
 * Answers a request to read `target`, its path and query. Rejects only when a file of the build cannot be read, and with a MissingFileError when one that
 * must be there is missing or is not whole.
 */
export async function respond<File extends OpenFile>(
  target: string,
  site: BuiltSite,
  files: Files<File>,
  readIndex: ReadIndex = async (path) => (await files.open(path))?.text(),
): Promise<Answer<File>> {
  const route = parseTarget(target, site);
  if (route.kind === 'outside' || route.kind === 'unknown') return { kind: 'other' };
  if (route.kind === 'refusal') return { kind: 'refusal', message: route.message };
  if (route.kind === 'status') {
    const page = await files.open(STATUS_PATH);
    if (page === undefined) throw new MissingFileError(STATUS_PATH);
    return { kind: 'page', page, path: STATUS_PATH, isSettled: false };
  }
  if (site.layout === 'packed') return answerFromRun(await findRun(route.list, site, readIndex), route.window, site, files);
  return answerList(route.list, route.window, site, files);
}

/** Facts of files that hosts keep open: counting a page's records takes some of the time of a request. */
const knownFacts = new WeakMap<OpenFile, PageFacts>();

/**
 * Reads the facts of a page. Rejects with a MissingFileError when the page is not whole: it is being written, or was when its build was killed.
 */
export async function readFacts(page: OpenFile, path: string): Promise<PageFacts> {
  const known = knownFacts.get(page);
  if (known !== undefined) return known;
  const facts = factsOf(await page.text());
  if (facts === undefined) throw notWhole(path);
  knownFacts.set(page, facts);
  return facts;
}

async function readWholeText(page: OpenFile, path: string): Promise<string> {
  await readFacts(page, path);
  return page.text();
}

const notWhole = (path: string): MissingFileError => new MissingFileError(path, 'is not a whole page');

async function answerList<File extends OpenFile>(
  list: ActivityList,
  window: Window,
  site: BuiltSite,
  files: Files<File>,
): Promise<Answer<File>> {
  const stem = stemOf(list, site);
  const open = (id: PageId) => files.open(pagePath(stem, id, site));
  const check = (id: PageId, found: Window) => {
    if (found.limit !== id.limit || found.offset !== id.offset) throw otherSizes(pagePath(stem, id, site));
  };
  const read = async (id: PageId, page: File) => {
    const found = readWhole(await page.text(), pagePath(stem, id, site));
    check(id, found);
    return found;
  };

  const exact = exactPage(window, site);
  const first = exact ?? firstRead(window, site);
  const fallback = fallbackPage(site);
  const isFallback = first.limit === fallback.limit && first.offset === fallback.offset;
  const page = await open(first);
  if (page !== undefined && exact !== undefined) {
    const path = pagePath(stem, first, site);
    const facts = await readFacts(page, path);
    check(first, facts);
    return { kind: 'page', page, path, isSettled: facts.height !== undefined && isSettled(facts.height, site) };
  }
  if (page !== undefined) {
    const found = await read(first, page);
    const second = secondRead(window, first, found.total);
    if (second === undefined) return slice(window, found, site);
    const next = await open(second);
    if (next === undefined) throw new MissingFileError(pagePath(stem, second, site));
    const rest = await read(second, next);
    if (!areOfOneList(found, rest)) throw new MissingFileError(pagePath(stem, second, site), 'is of another build than the page before it');
    // They may still be of two builds, if a correction changed neither the total nor the block: no CDN is to hold that for long.
    return { ...slice(window, { ...found, records: [...found.records, ...rest.records] }, site), isSettled: false };
  }
  // No such page: the list is short and its first page holds all of it, or it ends before the window, or it does not exist.
  const start = isFallback ? undefined : await open(fallback);
  // The id is not in the data.
  if (start === undefined) return envelopeAnswer(window, 0, [], site);
  const found = await read(fallback, start);
  if (found.total > window.offset && found.total > found.records.length) throw new MissingFileError(pagePath(stem, first, site));
  return slice(window, found, site);
}

/** Takes a page apart. Throws a MissingFileError when it is not whole. */
function readWhole(text: string, path: string): ReadPage {
  try {
    return readPage(text);
  } catch (error) {
    throw error instanceof PageFormatError ? notWhole(path) : error;
  }
}

const otherSizes = (path: string): MissingFileError => new MissingFileError(path, 'is of a build with other page sizes');

/** Whether two pages can be of one state of a list: each record of a list has the same block. A correction may change neither this nor the total. */
const areOfOneList = (a: ReadPage, b: ReadPage): boolean =>
  a.total === b.total && blockHashOf(a.records[0] ?? '') === blockHashOf(b.records[0] ?? '');

/** The window cut out of what was read, which begins at or before it. */
function slice(window: Window, read: ReadPage, site: BuiltSite): WindowAnswer {
  const from = window.offset - read.offset;
  return envelopeAnswer(window, read.total, read.records.slice(from, from + window.limit), site);
}

function envelopeAnswer(window: Window, total: number, records: readonly string[], site: BuiltSite): WindowAnswer {
  const height = blockHeightOf(records[0] ?? '');
  return {
    kind: 'window',
    body: renderEnvelope(window, total, records),
    isSettled: height !== undefined && isSettled(height, site),
  };
}

/** A run of records of the list whose pages are at `stem`. */
interface PagedRun extends Run {
  readonly stem: string;
  /** Whether the run is the whole list, so that a window that is a page has a file. */
  readonly isWhole: boolean;
}

/** Where the records of a list are in layout `packed`: one file is read. Undefined for an id that is not in the data. */
async function findRun(list: ActivityList, site: BuiltSite, readIndex: ReadIndex): Promise<PagedRun | undefined> {
  if (list.kind === 'transaction') {
    const path = shardPath(list.txId.slice(0, site.prefixDigits));
    const shard = await readIndex(path);
    if (shard === undefined) throw new MissingFileError(path);
    const run = findEntry(shard, list.txId);
    return run && { ...run, stem: blockStem(run.edition), isWhole: false };
  }
  const text = await readIndex(pointerPath(blockName(list.block, site.dialect)));
  if (text === undefined) return undefined;
  const { edition, records, operations } = readPointer(text);
  const total = list.operation === undefined ? records : (operations[list.operation] ?? 0);
  return { edition, first: 0, total, stem: blockStem(edition, list.operation), isWhole: true };
}

async function answerFromRun<File extends OpenFile>(
  run: PagedRun | undefined,
  window: Window,
  site: BuiltSite,
  files: Files<File>,
): Promise<Answer<File>> {
  if (run === undefined) return envelopeAnswer(window, 0, [], site);
  const { pages, from } = pagesOfRun(run, window, site);
  const paths = pages.map((id) => packedPagePath(run.stem, id));
  const opened = await openAll(paths, files);
  const [path, page] = [paths[0], opened[0]];
  const isPage = run.isWhole && from === 0 && pages[0]?.limit === window.limit;
  if (isPage && path !== undefined && page !== undefined) {
    await readFacts(page, path);
    return { kind: 'page', page, path, isSettled: isSettled(Number.parseInt(run.edition, 10), site) };
  }
  const count = Math.max(Math.min(window.limit, run.total - window.offset), 0);
  const parts: string[] = [];
  let missing = count;
  for (const [i, text] of (await Promise.all(opened.map((file, i) => readWholeText(file, paths[i] ?? '')))).entries()) {
    const cut = cutRecords(text, i === 0 ? from : 0, missing);
    parts.push(cut.text);
    missing -= cut.count;
  }
  if (missing > 0) throw new Error(`${run.stem} has fewer records than its index says`);
  return envelopeAnswer(window, run.total, parts, site);
}

/** Opens pages that have to be there, at once. When one cannot be had the others are let go of: an unread response keeps its connection. */
async function openAll<File extends OpenFile>(paths: readonly string[], files: Files<File>): Promise<File[]> {
  const outcomes = await Promise.allSettled(
    paths.map(async (path) => {
      const page = await files.open(path);
      if (page === undefined) throw new MissingFileError(path);
      return page;
    }),
  );
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  const pages = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  if (failed === undefined) return pages;
  for (const page of pages) await page.close?.();
  throw failed.reason;
}
