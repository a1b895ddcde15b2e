/**
 * Renders pages, such as `{"limit":20,"offset":0,"total":41,"results":[{"rune":...},{"rune":...}]}`, and splits them into records, without
 * a JSON parser. Every record begins with `{"rune":`, and JSON escapes quotes inside strings. So `},{"rune":` occurs only between two
 * records. Cutting there keeps the bytes of every record unchanged.
 */
import { type BuiltSite, isSettled } from './mirrorOptions.ts';
import type { Window } from './parseQuery.ts';

export const envelopeHead = (window: Window, total: number): string =>
  `{"limit":${window.limit},"offset":${window.offset},"total":${total},"results":[`;

export const ENVELOPE_TAIL = ']}';

/** A page: its window, the total of its list, and the text of each record, in order. */
export interface ReadPage extends Window {
  readonly total: number;
  readonly records: readonly string[];
}

const HEAD = /^\{"limit":(\d+),"offset":(\d+),"total":(\d+),"results":\[/;
/** The text between two records. */
export const BETWEEN = '},{"rune":';

/** Finds the records of a page, from `begin` to `end`. Throws a PageFormatError for text that does not begin and end like a page. */
function openEnvelope(text: string) {
  const head = HEAD.exec(text);
  if (head === null || !text.endsWith(ENVELOPE_TAIL)) throw new PageFormatError(text);
  const [limit = 0, offset = 0, total = 0] = head.slice(1).map(Number);
  const [begin, end] = [head[0].length, text.length - ENVELOPE_TAIL.length];
  if (begin !== end && (!text.startsWith('{"rune":', begin) || text[end - 1] !== '}')) throw new PageFormatError(text);
  return { limit, offset, total, begin, end };
}

/**
 * Splits a page into records. Throws a PageFormatError for text that is not a complete page of this program. A running or killed build
 * leaves incomplete pages, because builds write new pages directly to their paths. An incomplete page may also end with `]}`, if a value
 * has these characters. So the function counts the records and parses the last one.
 */
export function readPage(text: string): ReadPage {
  const { limit, offset, total, begin, end } = openEnvelope(text);
  const parts = begin === end ? [] : text.slice(begin, end).split(BETWEEN);
  if (parts.length !== Math.max(Math.min(limit, total - offset), 0)) throw new PageFormatError(text);
  const records = parts.map((part, i) => {
    const from = i === 0 ? part : `{"rune":${part}`;
    return i === parts.length - 1 ? from : `${from}}`;
  });
  try {
    JSON.parse(records.at(-1) ?? '{}');
  } catch {
    throw new PageFormatError(text);
  }
  return { limit, offset, total, records };
}

/**
 * Cuts up to `count` records out of a page, from record `from` on. Returns their text, joined by commas, and their number, which may be
 * less than `count` at the end of the page. Faster than `readPage`, because it does not split the other records. Throws a PageFormatError
 * for text that is not a page of this program.
 */
export function cutRecords(text: string, from: number, count: number): { readonly text: string; readonly count: number } {
  const { begin, end } = openEnvelope(text);
  // Returns the position of the record after the one at `at`. After the last record, it is as if a comma followed.
  const after = (at: number): number => {
    const next = text.indexOf(BETWEEN, at);
    return next < 0 ? end + 1 : next + 2;
  };
  let start = begin;
  for (let i = 0; i < from && start < end; i += 1) start = after(start);
  let [next, found] = [start, 0];
  while (next < end && found < count) {
    next = after(next);
    found += 1;
  }
  return { text: text.slice(start, next - 1), count: found };
}

/** Returns the block hash of a record, in the record's own spelling. No value can contain `"block_hash":`, because JSON escapes quotes. */
export const blockHashOf = (record: string): string | undefined => /"block_hash":"([^"]*)"/.exec(record)?.[1];

/** Returns the tx id of the first record in a text, in the record's own spelling. Undefined without a record. */
export const txIdOf = (text: string): string | undefined => /"tx_id":"([^"]*)"/.exec(text)?.[1];

/** Returns the block height of the first record in a text. Undefined without a record. */
export function blockHeightOf(text: string): number | undefined {
  const digits = /"block_height":([0-9]{1,16})/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** True if the first record of a text is in a settled block. False without a record. */
export function beginsSettled(text: string, site: BuiltSite): boolean {
  const height = blockHeightOf(text);
  return height !== undefined && isSettled(height, site);
}

/** Renders the page of a window. `records` are the list's records in the window. */
export const renderEnvelope = (window: Window, total: number, records: readonly string[]): string =>
  envelopeHead(window, total) + records.join(',') + ENVELOPE_TAIL;

/** A body that is made of texts from files. The host must encode the body in the same way as it decodes files. */
export interface WindowAnswer {
  readonly kind: 'window';
  readonly body: string;
  readonly isSettled: boolean;
  /**
   * Height of the last block that the list takes into account; -1 without blocks. Undefined for a list of holders that names an older block
   * itself, and for records of a block or a transaction, which no later block changes.
   */
  readonly height?: number;
  /** The body as one gzip member, if the build has it. */
  readonly gzip?: Uint8Array;
}

/** Returns the answer with the records of a window, joined by commas. */
export const windowAnswer = (window: Window, total: number, records: string, site: BuiltSite): WindowAnswer => ({
  kind: 'window',
  body: renderEnvelope(window, total, [records]),
  isSettled: beginsSettled(records, site),
});

export class PageFormatError extends Error {
  override readonly name = 'PageFormatError';
  constructor(text: string) {
    super(`not a complete page of rune-activity-mirror; the file begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
}
