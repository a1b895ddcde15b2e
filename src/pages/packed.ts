/**
 * Layout `packed`: how a list is found when only blocks have pages.
 *
 * A transaction's list is a run of its block's records. The index says which run, in files by the first digits of the tx id:
 *
 *     {"transactions":{
 *     "0x3fa0…":["840000-0x1a2b3c4d",12,3],
 *     "0x3fa1…":["840007-0x99ffee00",0,1]
 *     }}
 *
 * Each entry is a tx id, ascending, and [edition of its block, number of its first record there, how many records]. A line each, so that one can be
 * found without parsing the other thousand. There is a file for every prefix, also for one without transactions, so a missing file
 * is never mistaken for an unknown transaction.
 *
 * A block is found by a pointer, under its height and under its hash, which names its edition and tells what it holds. Everything
 * else is in the page files of the edition, which never change: whatever mix of old and new files a host has, what an index or a pointer names
 * is either there and right, or missing.
 */
import { type Dialect, maximumLimit, OPERATIONS, type Operation, type Site, spellHex } from './lists.ts';
import type { PageId } from './paths.ts';
import type { Window } from './request.ts';

/** A run of records in a list that has pages: `total` of them from number `first` on. */
export interface Run {
  /** The edition of the block (see `editionName`). */
  readonly edition: string;
  readonly first: number;
  readonly total: number;
}

/** How many entries a file of the index has at most, on average: some 64 KB. */
const ENTRIES_PER_SHARD = 640;

/** How many hex digits name a file of the index of so many transactions: the fewest that keep it small. */
export function prefixDigitsFor(transactions: number): number {
  let digits = 1;
  while (transactions > ENTRIES_PER_SHARD * 16 ** digits) digits += 1;
  return digits;
}

/** The prefixes of so many hex digits, ascending. */
export function* prefixes(digits: number): Generator<string> {
  for (let i = 0; i < 16 ** digits; i += 1) yield i.toString(16).padStart(digits, '0');
}

export const SHARD_HEAD = '{"transactions":{';
export const SHARD_TAIL = '\n}}\n';

/** What stands between two entries. The line feed stands before the first too. */
export const BETWEEN_ENTRIES = ',\n';

/** What an entry begins with, before its tx id. */
export const entryHead = (dialect: Dialect): string => `"${spellHex('', dialect)}`;

/** The pieces of an entry behind the tx id: they stand before and between its edition, first record and number of records, and at its end. */
export const ENTRY_PIECES = ['":["', '",', ',', ']'] as const;

/** The form of an edition's name. It becomes a part of a path, so nothing else may pass for one. */
const EDITION = '[0-9]+-(?:0x)?[0-9a-f]+';
const ENTRY = new RegExp(`\\["(${EDITION})",([0-9]+),([0-9]+)\\]`, 'y');
const WHOLE_EDITION = new RegExp(`^${EDITION}$`);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** The entries of a file of the index, in their order. Throws an IndexFormatError for a text that is none. */
export function readShard(text: string): string[] {
  if (!isShard(text)) throw new IndexFormatError(text);
  const body = text.slice(SHARD_HEAD.length, -SHARD_TAIL.length);
  if (body === '') return [];
  if (!body.startsWith('\n')) throw new IndexFormatError(text);
  return body.slice(1).split(BETWEEN_ENTRIES);
}

/** The text of a file of the index with these entries, ascending. */
export const renderShard = (entries: readonly string[]): string =>
  SHARD_HEAD + (entries.length === 0 ? '' : `\n${entries.join(BETWEEN_ENTRIES)}`) + SHARD_TAIL;

const isShard = (text: string): boolean => text.startsWith(SHARD_HEAD) && text.endsWith(SHARD_TAIL);

/**
 * The run of a transaction, from the text of its file of the index; undefined when the index does not have it. Ids of both dialects are found: while
 * a build is replaced by one of the other, the manifest is the last to say so.
 */
export function findEntry(shard: string, txId: string): Run | undefined {
  if (!isShard(shard)) throw new IndexFormatError(shard);
  // Every id has 64 digits, so this is a whole one.
  const key = `${txId}":`;
  const at = shard.indexOf(key);
  if (at < 0) return undefined;
  ENTRY.lastIndex = at + key.length;
  const [, edition, first, total] = ENTRY.exec(shard) ?? [];
  const run = { first: Number(first), total: Number(total) };
  if (edition === undefined || !isCount(run.first) || !isCount(run.total)) throw new IndexFormatError(shard.slice(at, at + 200));
  return { edition, ...run };
}

/** What a pointer says of a block. */
export interface Pointer {
  readonly edition: string;
  readonly records: number;
  /** Records of each operation that the block has. */
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

/** The text of a block's pointer. */
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

/** Reads the text of a pointer. Throws an IndexFormatError for anything else. */
export function readPointer(text: string): Pointer {
  try {
    const { edition, records, operations } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isNamed = typeof edition === 'string' && WHOLE_EDITION.test(edition);
    const areCounted = typeof operations === 'object' && operations !== null && Object.values(operations).every(isCount);
    if (isNamed && isCount(records) && areCounted) return { edition, records, operations };
  } catch {
    // Not even JSON.
  }
  throw new IndexFormatError(text);
}

/** The pages, at most two, that hold the records of a window of a run; `from` is the window's place in the first of them. */
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
    super(`this file is not an index or a pointer of rune-activity-mirror; it begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
