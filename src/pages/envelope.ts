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

/** Takes a page apart. Throws a PageFormatError for text that is not a page of this program. */
export function readPage(text: string): ReadPage {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) throw new PageFormatError(text);
  const [limit = 0, offset = 0, total = 0] = head.slice(1).map(Number);
  const body = text.slice(head[0].length, -ENVELOPE_TAIL.length);
  if (body === '') return { limit, offset, total, records: [] };
  if (!body.startsWith('{"rune":') || !body.endsWith('}')) throw new PageFormatError(text);
  const parts = body.split(BETWEEN);
  const records = parts.map((part, i) => {
    const from = i === 0 ? part : `{"rune":${part}`;
    return i === parts.length - 1 ? from : `${from}}`;
  });
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
    super(`this file is not a page of rune-activity-mirror; it begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
