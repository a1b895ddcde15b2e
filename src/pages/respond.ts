/**
 * The page map: answers a request target from a way to read files. It uses no platform API. Each host (Node, edge
 * functions, workers) adapts it in a few lines.
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
import type { ActivityList } from './lists.ts';
import { findEntry, pagesOfRun, type Run, readPointer } from './packed.ts';
import { blockName, blockStem, type PageId, packedPagePath, pagePath, pointerPath, STATUS_PATH, shardPath, stemOf } from './paths.ts';
import { parseTarget, type Window } from './request.ts';
import { type BuiltSite, isSettled } from './site.ts';
import { exactPage, fallbackPage, firstRead, secondRead } from './window.ts';

/** An opened file of a build. */
export interface OpenFile {
  /**
   * Returns the content. ASCII characters must be themselves. A host may decode other bytes in any way that it reverses
   * when it sends a body: bodies are cut only at ASCII characters.
   */
  text(): Promise<string>;
  /** Releases a file that will not be read. Absent when open files need no release. */
  close?(): Promise<void>;
}

/**
 * Opens files of a build; each host has its own implementation. `path` is like `runes/v1/...`. Resolves to undefined
 * when the file does not exist, and rejects when the host cannot tell. `File` is the host's own type, so that it can
 * send a page unchanged.
 */
export interface Files<File extends OpenFile> {
  open(path: string): Promise<File | undefined>;
}

/**
 * Reads a pointer or an index file (layout `packed`). A host may answer from memory for a while: the pages that an old
 * index names never change, they are only removed.
 */
export type ReadIndex = (path: string) => Promise<string | undefined>;

/**
 * A required file is missing, or belongs to another build than the files read with it. The build is being replaced or
 * is incomplete. The caller may try again.
 */
export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
  constructor(path: string, what = 'is missing from the build') {
    super(`${path} ${what}`);
  }
}

/** A file of the build, to be sent unchanged. */
interface PageAnswer<File extends OpenFile> {
  readonly kind: 'page';
  readonly page: File;
  readonly path: string;
  readonly isSettled: boolean;
}

/** A body joined from the texts of files, to be encoded as the host decoded them. */
interface WindowAnswer {
  readonly kind: 'window';
  readonly body: string;
  readonly isSettled: boolean;
}

export type Answer<File extends OpenFile> =
  | PageAnswer<File>
  | WindowAnswer
  /** The request breaks a rule of the API; `message` tells which. */
  | { readonly kind: 'refusal'; readonly message: string }
  /** The path is not in the API. It may be a file of the build or of the host. */
  | { readonly kind: 'other' };

/**
 * Answers a request for `target`, a path and query. Rejects with a MissingFileError when a required file is missing or
 * incomplete, and with the host's error when a file cannot be read.
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

/** Facts of pages that a host keeps open, because counting the records of a page takes time. */
const knownFacts = new WeakMap<OpenFile, PageFacts>();

/**
 * Reads window, total and height of a page. Rejects with a MissingFileError when the page is incomplete: a build is
 * writing it, or was killed while it did.
 */
export async function readFacts(page: OpenFile, path: string): Promise<PageFacts> {
  const known = knownFacts.get(page);
  if (known !== undefined) return known;
  const facts = factsOf(await page.text());
  if (facts === undefined) throw incompletePage(path);
  knownFacts.set(page, facts);
  return facts;
}

async function readCompleteText(page: OpenFile, path: string): Promise<string> {
  await readFacts(page, path);
  return page.text();
}

const incompletePage = (path: string): MissingFileError => new MissingFileError(path, 'is not a complete page');

async function answerList<File extends OpenFile>(
  list: ActivityList,
  window: Window,
  site: BuiltSite,
  files: Files<File>,
): Promise<Answer<File>> {
  const stem = stemOf(list, site);
  const open = (id: PageId) => files.open(pagePath(stem, id, site));
  const check = (id: PageId, found: Window) => {
    if (found.limit !== id.limit || found.offset !== id.offset) throw otherPageSizes(pagePath(stem, id, site));
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
    if (!areOfOneList(found, rest))
      throw new MissingFileError(pagePath(stem, second, site), 'belongs to another build than the previous page');
    // The pages may still be of two builds, if neither the total nor the block changed. So no CDN may cache this answer
    // for long.
    return { ...slice(window, { ...found, records: [...found.records, ...rest.records] }, site), isSettled: false };
  }
  // Without such a page, the first page either has the complete list, or shows that the list ends before the window.
  // Without a first page the list does not exist.
  const start = isFallback ? undefined : await open(fallback);
  if (start === undefined) return envelopeAnswer(window, 0, [], site);
  const found = await read(fallback, start);
  if (found.total > window.offset && found.total > found.records.length) throw new MissingFileError(pagePath(stem, first, site));
  return slice(window, found, site);
}

/** Splits a page into records. Throws a MissingFileError when it is incomplete. */
function readWhole(text: string, path: string): ReadPage {
  try {
    return readPage(text);
  } catch (error) {
    throw error instanceof PageFormatError ? incompletePage(path) : error;
  }
}

const otherPageSizes = (path: string): MissingFileError => new MissingFileError(path, 'belongs to a build with other page sizes');

/**
 * True when two pages may be of the same build: they have the same total and block. A correction may leave both
 * unchanged.
 */
const areOfOneList = (a: ReadPage, b: ReadPage): boolean =>
  a.total === b.total && blockHashOf(a.records[0] ?? '') === blockHashOf(b.records[0] ?? '');

/** Cuts the window out of records that begin at or before it. */
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

/** A run of records, and the stem of the list whose pages have them. */
interface PagedRun extends Run {
  readonly stem: string;
  /** True when the run is the complete list, so that an aligned window has a file. */
  readonly isWhole: boolean;
}

/** Locates the records of a list in layout `packed` by reading one file. Undefined for an unknown id. */
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
  for (const [i, text] of (await Promise.all(opened.map((file, i) => readCompleteText(file, paths[i] ?? '')))).entries()) {
    const cut = cutRecords(text, i === 0 ? from : 0, missing);
    parts.push(cut.text);
    missing -= cut.count;
  }
  if (missing > 0) throw new Error(`${run.stem} has fewer records than its index or pointer says`);
  return envelopeAnswer(window, run.total, parts, site);
}

/**
 * Opens required pages in parallel. If one fails, the others are released, because an unread response keeps its
 * connection open.
 */
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
