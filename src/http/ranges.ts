/**
 * Requests for a part of a file (RFC 9110, 14): readers of Parquet ask for its end first, and then for the columns that they want.
 */

/** Bytes of a file: the last `suffix`, or those from `start` on, up to `end` (included) or to the end of the file. */
export type WantedRange =
  | { readonly kind: 'suffix'; readonly suffix: number }
  | { readonly kind: 'from'; readonly start: number; readonly end: number | undefined };

/** Files that are read by ranges, and never sent compressed. */
export const isReadByRanges = (path: string): boolean => path.endsWith('.parquet');

/** Spaces between signs do no harm; within a number they would make another of it. */
const RANGE = /^ *bytes *= *(?:([0-9]{1,15}) *- *([0-9]{1,15})?|- *([0-9]{1,15})) *$/;

/** What a Range header wants. Undefined for none, and for one that a server may pass over: several ranges, another unit, or no sense. */
export function wantedRange(header: string | null | undefined): WantedRange | undefined {
  const [, start, end, suffix] = RANGE.exec(header ?? '') ?? [];
  if (suffix !== undefined) return { kind: 'suffix', suffix: Number(suffix) };
  if (start === undefined) return undefined;
  const range = { kind: 'from', start: Number(start), end: end === undefined ? undefined : Number(end) } as const;
  return range.end !== undefined && range.end < range.start ? undefined : range;
}

/** The first and the last byte of what is wanted of a file of `size` bytes; undefined when there is nothing of it. */
export function satisfy(wanted: WantedRange, size: number): { readonly start: number; readonly end: number } | undefined {
  const start = wanted.kind === 'suffix' ? Math.max(size - wanted.suffix, 0) : wanted.start;
  const end = wanted.kind === 'suffix' ? size - 1 : Math.min(wanted.end ?? size - 1, size - 1);
  return start <= end ? { start, end } : undefined;
}
