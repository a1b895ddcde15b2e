/**
 * The text of a response, made and taken apart without a JSON parser.
 *
 * A page is `{"limit":20,"offset":0,"total":41,"results":[{"rune":...},{"rune":...}]}`. Every record begins with `{"rune":` and
 * inside a JSON string no bare quote can stand, so `},{"rune":` occurs between two records and nowhere else. Cutting there keeps
 * the bytes of every record as they were written.
 */
import type { Window } from './request.ts';

/** What stands before the records of a response. */
export const envelopeHead = (window: Window, total: number): string =>
  `{"limit":${window.limit},"offset":${window.offset},"total":${total},"results":[`;

/** What stands after them. */
export const ENVELOPE_TAIL = ']}';

/** A page taken apart: its window, the list's total, and the text of the page's records, in order. */
export interface ReadPage extends Window {
  readonly total: number;
  readonly records: readonly string[];
}

const HEAD = /^\{"limit":(\d+),"offset":(\d+),"total":(\d+),"results":\[/;
const BETWEEN = '},{"rune":';

/** The number of records of a page of a list of `total` records. */
const recordsOf = (page: Window, total: number): number => Math.max(Math.min(page.limit, total - page.offset), 0);

/** The window of a page, the total of its list, and the height of its records' block; undefined when it has no records. */
export interface PageFacts extends Window {
  readonly total: number;
  readonly height: number | undefined;
}

/**
 * Reads the facts of a page without taking it apart. Undefined for text that is not a whole page: builds create new pages in place, so one that is
 * being written, or was when its build was killed, is the beginning of a page. Its end alone proves nothing, because a value may have the same
 * characters: the records are counted, and the last one has to be JSON.
 */
export function factsOf(text: string): PageFacts | undefined {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) return undefined;
  const [limit = 0, offset = 0, total = 0] = head.slice(1).map(Number);
  const [begin, end] = [head[0].length, text.length - ENVELOPE_TAIL.length];
  if (begin !== end && (!text.startsWith('{"rune":', begin) || text[end - 1] !== '}')) return undefined;
  let [count, last] = [begin === end ? 0 : 1, begin];
  for (let at = text.indexOf(BETWEEN, begin); at >= 0; at = text.indexOf(BETWEEN, at + BETWEEN.length)) {
    count += 1;
    last = at + 2;
  }
  const isWhole = count === recordsOf({ limit, offset }, total) && (count === 0 || isJson(text.slice(last, end)));
  return isWhole ? { limit, offset, total, height: blockHeightOf(text) } : undefined;
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

/** Takes a page apart. Throws a PageFormatError for text that is not a whole page of this program. */
export function readPage(text: string): ReadPage {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) throw new PageFormatError(text);
  const [limit = 0, offset = 0, total = 0] = head.slice(1).map(Number);
  const body = text.slice(head[0].length, -ENVELOPE_TAIL.length);
  const isList = body === '' || (body.startsWith('{"rune":') && body.endsWith('}'));
  const parts = body === '' ? [] : body.split(BETWEEN);
  if (!isList || parts.length !== recordsOf({ limit, offset }, total)) throw new PageFormatError(text);
  const records = parts.map((part, i) => {
    const from = i === 0 ? part : `{"rune":${part}`;
    return i === parts.length - 1 ? from : `${from}}`;
  });
  if (!isJson(records.at(-1) ?? '{}')) throw new PageFormatError(text);
  return { limit, offset, total, records };
}

/**
 * The text of `count` records of a page from the one with number `from` on, joined by commas, and how many there were: fewer at the page's end. As
 * `readPage`, without taking the whole page apart. Throws a PageFormatError for text that is not a page of this program.
 */
export function cutRecords(text: string, from: number, count: number): { readonly text: string; readonly count: number } {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) throw new PageFormatError(text);
  const [begin, end] = [head[0].length, text.length - ENVELOPE_TAIL.length];
  if (begin === end || count === 0) return { text: '', count: 0 };
  if (!text.startsWith('{"rune":', begin) || text[end - 1] !== '}') throw new PageFormatError(text);
  // Where a record begins, or undefined behind the last.
  const after = (at: number): number | undefined => {
    const next = text.indexOf(BETWEEN, at);
    return next < 0 ? undefined : next + 2;
  };
  let start: number | undefined = begin;
  for (let i = 0; i < from && start !== undefined; i += 1) start = after(start);
  if (start === undefined) return { text: '', count: 0 };
  let [next, found]: [number | undefined, number] = [start, 0];
  while (next !== undefined && found < count) {
    next = after(next);
    found += 1;
  }
  return { text: text.slice(start, next === undefined ? end : next - 1), count: found };
}

/** The hash of a record's block, as it is spelled there. Like `{"rune":`, the key can't be a part of any value. */
export const blockHashOf = (record: string): string | undefined => /"block_hash":"([^"]*)"/.exec(record)?.[1];

/** The height of a record's block, or of that of the first record in a longer text; undefined when there is none. */
export function blockHeightOf(text: string): number | undefined {
  const digits = /"block_height":([0-9]{1,16})/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The response for a window: `records` are those of the list that the window holds. */
export const renderEnvelope = (window: Window, total: number, records: readonly string[]): string =>
  envelopeHead(window, total) + records.join(',') + ENVELOPE_TAIL;

export class PageFormatError extends Error {
  override readonly name = 'PageFormatError';
  constructor(text: string) {
    super(`this file is not a whole page of rune-activity-mirror; it begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
