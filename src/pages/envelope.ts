/**
 * Renders pages and splits them into records, without a JSON parser.
 *
 * A page is `{"limit":20,"offset":0,"total":41,"results":[{"rune":...},{"rune":...}]}`. Every record begins with
 * `{"rune":`, and JSON escapes quotes inside strings. So `},{"rune":` occurs only between two records. Cutting there
 * keeps the bytes of every record unchanged.
 */
import type { Window } from './parseQuery.ts';

export const envelopeHead = (window: Window, total: number): string =>
  `{"limit":${window.limit},"offset":${window.offset},"total":${total},"results":[`;

/** The text after the records of a page. */
export const ENVELOPE_TAIL = ']}';

/** A page: its window, the total of its list, and the text of each record, in order. */
export interface ReadPage extends Window {
  readonly total: number;
  readonly records: readonly string[];
}

const HEAD = /^\{"limit":(\d+),"offset":(\d+),"total":(\d+),"results":\[/;
/** The text between two records. */
export const BETWEEN = '},{"rune":';

/**
 * Parses the text around the records of a page. The records are the text from `begin` to `end`. Returns undefined for
 * text that does not begin and end like a page.
 */
function openEnvelope(text: string) {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) return undefined;
  const [limit = 0, offset = 0, total = 0] = head.slice(1).map(Number);
  const [begin, end] = [head[0].length, text.length - ENVELOPE_TAIL.length];
  const isEmpty = begin === end;
  if (!isEmpty && (!text.startsWith('{"rune":', begin) || text[end - 1] !== '}')) return undefined;
  return { limit, offset, total, begin, end, isEmpty };
}

/** Returns the number of records in a page of a list with `total` records. */
const recordsOf = (page: Window, total: number): number => Math.max(Math.min(page.limit, total - page.offset), 0);

/** The window of a page, the total of its list, and the block height of its first record, if it has any. */
export interface PageFacts extends Window {
  readonly total: number;
  readonly height: number | undefined;
}

/**
 * Reads window, total and height of a page without splitting it into records. Returns undefined for an incomplete page,
 * as a running or killed build leaves it, because builds write new pages directly to their paths. An incomplete page
 * may also end with `]}`, if a value has these characters. So the function counts the records and parses the last one.
 */
export function factsOf(text: string): PageFacts | undefined {
  const page = openEnvelope(text);
  if (page === undefined) return undefined;
  const { limit, offset, total, begin, end, isEmpty } = page;
  let [count, last] = [isEmpty ? 0 : 1, begin];
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

/** Splits a page into records. Throws a PageFormatError for text that is not a complete page of this program. */
export function readPage(text: string): ReadPage {
  const page = openEnvelope(text);
  if (page === undefined) throw new PageFormatError(text);
  const { limit, offset, total } = page;
  const parts = page.isEmpty ? [] : text.slice(page.begin, page.end).split(BETWEEN);
  if (parts.length !== recordsOf(page, total)) throw new PageFormatError(text);
  const records = parts.map((part, i) => {
    const from = i === 0 ? part : `{"rune":${part}`;
    return i === parts.length - 1 ? from : `${from}}`;
  });
  if (!isJson(records.at(-1) ?? '{}')) throw new PageFormatError(text);
  return { limit, offset, total, records };
}

/**
 * Cuts up to `count` records out of a page, from record `from` on. Returns their text, joined by commas, and their
 * number, which may be less than `count` at the end of the page. Faster than `readPage`, because it does not split the
 * other records. Throws a PageFormatError for text that is not a page of this program.
 */
export function cutRecords(text: string, from: number, count: number): { readonly text: string; readonly count: number } {
  const page = openEnvelope(text);
  if (page === undefined) throw new PageFormatError(text);
  const { begin, end, isEmpty } = page;
  if (isEmpty || count === 0) return { text: '', count: 0 };
  // Returns the position of the record after the record at `at`. Undefined if it is the last record.
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

/**
 * Returns the block hash of a record, in the record's own spelling. No value can contain `"block_hash":`, because JSON
 * escapes quotes.
 */
export const blockHashOf = (record: string): string | undefined => /"block_hash":"([^"]*)"/.exec(record)?.[1];

/** Returns the tx id of the first record in a text, in the record's own spelling. Undefined without a record. */
export const txIdOf = (text: string): string | undefined => /"tx_id":"([^"]*)"/.exec(text)?.[1];

/** Returns the block height of the first record in a text. Undefined without a record. */
export function blockHeightOf(text: string): number | undefined {
  const digits = /"block_height":([0-9]{1,16})/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Renders the page of a window. `records` are the list's records in the window. */
export const renderEnvelope = (window: Window, total: number, records: readonly string[]): string =>
  envelopeHead(window, total) + records.join(',') + ENVELOPE_TAIL;

export class PageFormatError extends Error {
  override readonly name = 'PageFormatError';
  constructor(text: string) {
    super(`not a complete page of rune-activity-mirror; the file begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
