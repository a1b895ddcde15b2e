/**
 * Layout `packed`: only blocks have pages, and an index locates the other lists.
 *
 * The list of a transaction is a run of consecutive records of its block. Index files, one for each prefix of tx ids,
 * name that run:
 *
 *     {"transactions":{
 *     "0x3fa0…":["840000-0x1a2b3c4d",12,3],
 *     "0x3fa1…":["840007-0x99ffee00",0,1]
 *     }}
 *
 * Entries ascend by tx id. Each has the edition of its block, the number of its first record in the block, and its
 * number of records. An entry has a line of its own, so that a reader finds it without parsing the others. Every prefix
 * has a file, even when empty, so a missing file never looks like an unknown transaction.
 *
 * A block has two pointers, by height and by hash. They name the block's edition and its numbers of records. The pages
 * of an edition never change. So on a host with a mix of old and new files, a page that an index or pointer names is
 * either correct or missing.
 */
import { spellHex } from './ids.ts';
import { OPERATIONS, type Operation } from './lists.ts';
import type { PageId } from './paths.ts';
import type { Window } from './request.ts';
import { type Dialect, maximumLimit, type Site } from './site.ts';

/** A run of consecutive records in a list with pages: `total` records from record `first` on. */
export interface Run {
  /** The edition of the block (see `editionName`). */
  readonly edition: string;
  readonly first: number;
  readonly total: number;
}

/** Average number of entries in an index file, at most: about 64 KB. */
const ENTRIES_PER_SHARD = 640;

/** Returns how many hex digits select an index file: the fewest that keep the files small. */
export function prefixDigitsFor(transactions: number): number {
  let digits = 1;
  while (transactions > ENTRIES_PER_SHARD * 16 ** digits) digits += 1;
  return digits;
}

/** Yields all prefixes of this many hex digits in ascending order. */
export function* prefixes(digits: number): Generator<string> {
  for (let i = 0; i < 16 ** digits; i += 1) yield i.toString(16).padStart(digits, '0');
}

export const SHARD_HEAD = '{"transactions":{';
export const SHARD_TAIL = '\n}}\n';

/** The text between two entries. The line feed also precedes the first entry. */
export const BETWEEN_ENTRIES = ',\n';

/** Returns the text of an entry before its tx id. */
export const entryHead = (dialect: Dialect): string => `"${spellHex('', dialect)}`;

/**
 * The text of an entry around its three values: before the edition, before the first record, before the number of
 * records, and at the end.
 */
export const ENTRY_PIECES = ['":["', '",', ',', ']'] as const;

/** The pattern of an edition's name. It is strict, because the name becomes part of a path. */
const EDITION = '[0-9]+-(?:0x)?[0-9a-f]+';
const ENTRY = new RegExp(`\\["(${EDITION})",([0-9]+),([0-9]+)\\]`, 'y');
const WHOLE_EDITION = new RegExp(`^${EDITION}$`);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Returns the entries of an index file in order. Throws an IndexFormatError for any other text. */
export function readShard(text: string): string[] {
  if (!isShard(text)) throw new IndexFormatError(text);
  const body = text.slice(SHARD_HEAD.length, -SHARD_TAIL.length);
  if (body === '') return [];
  if (!body.startsWith('\n')) throw new IndexFormatError(text);
  return body.slice(1).split(BETWEEN_ENTRIES);
}

/** Makes an index file from entries in ascending order. */
export const renderShard = (entries: readonly string[]): string =>
  SHARD_HEAD + (entries.length === 0 ? '' : `\n${entries.join(BETWEEN_ENTRIES)}`) + SHARD_TAIL;

const isShard = (text: string): boolean => text.startsWith(SHARD_HEAD) && text.endsWith(SHARD_TAIL);

/**
 * Finds the run of a transaction in its index file; undefined when the file does not have it. Finds ids of both
 * dialects, because a build that changes the dialect replaces the manifest last.
 */
export function findEntry(shard: string, txId: string): Run | undefined {
  if (!isShard(shard)) throw new IndexFormatError(shard);
  // All ids have 64 digits, so this cannot match part of a longer id.
  const key = `${txId}":`;
  const at = shard.indexOf(key);
  if (at < 0) return undefined;
  ENTRY.lastIndex = at + key.length;
  const [, edition, first, total] = ENTRY.exec(shard) ?? [];
  const run = { first: Number(first), total: Number(total) };
  if (edition === undefined || !isCount(run.first) || !isCount(run.total)) throw new IndexFormatError(shard.slice(at, at + 200));
  return { edition, ...run };
}

/** The content of a pointer. */
export interface Pointer {
  readonly edition: string;
  readonly records: number;
  /** Number of records by operation; operations without records are absent. */
  readonly operations: Readonly<Partial<Record<Operation, number>>>;
}

export interface PointedBlock {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  readonly records: number;
  readonly transactions: number;
  /** In the order of OPERATIONS. */
  readonly operations: readonly number[];
}

/** Makes the text of a block's pointer. */
export function renderPointer(block: PointedBlock, edition: string, dialect: Dialect): string {
  const operations = OPERATIONS.map((name, code) => [name, block.operations[code] ?? 0] as const).filter(([, count]) => count > 0);
  return JSON.stringify({
    edition,
    block_height: block.height,
    block_hash: spellHex(block.hash, dialect),
    records: block.records,
    transactions: block.transactions,
    operations: Object.fromEntries(operations),
  });
}

/** Parses a pointer. Throws an IndexFormatError for any other text. */
export function readPointer(text: string): Pointer {
  try {
    const { edition, records, operations } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isNamed = typeof edition === 'string' && WHOLE_EDITION.test(edition);
    const areCounted = typeof operations === 'object' && operations !== null && Object.values(operations).every(isCount);
    if (isNamed && isCount(records) && areCounted) return { edition, records, operations };
  } catch {
    // Not JSON: throw the same error as for a wrong form.
  }
  throw new IndexFormatError(text);
}

/**
 * Returns the pages, at most two, that have the records of a window of a run. `from` is the position of the window in
 * the first page.
 */
export function pagesOfRun(
  { first, total }: Run,
  window: Window,
  site: Site,
): { readonly pages: readonly PageId[]; readonly from: number } {
  const start = first + window.offset;
  const end = Math.min(start + window.limit, first + total);
  if (start >= end) return { pages: [], from: 0 };
  const limit = maximumLimit(site);
  const offset = Math.floor(start / limit) * limit;
  const pages = end > offset + limit ? [offset, offset + limit] : [offset];
  return { pages: pages.map((at) => ({ limit, offset: at })), from: start - offset };
}

export class IndexFormatError extends Error {
  override readonly name = 'IndexFormatError';
  constructor(text: string) {
    super(`not an index file or pointer of rune-activity-mirror; the file begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
