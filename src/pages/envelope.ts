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
