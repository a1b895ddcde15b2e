/** Range requests (RFC 9110, 14). Parquet readers request the end of a file first, then the columns that they need. */

/** The bytes `start` to `end` of a file, both inclusive. */
export interface Part {
  readonly start: number;
  readonly end: number;
}

/** Part of a file in bytes: the last `suffix` bytes, or `start` to `end` inclusive. Without `end`, the rest. */
type WantedRange =
  | { readonly kind: 'suffix'; readonly suffix: number }
  | { readonly kind: 'from'; readonly start: number; readonly end: number | undefined };

/** True for files that clients read by ranges: Parquet files, and files of layout `archive`. Hosts never compress them. */
export const isReadByRanges = (path: string): boolean => path.endsWith('.parquet') || path.endsWith('.bin');

/** A Range header with one range. Allows spaces between tokens, and any case. */
const RANGE = /^ *bytes *= *(?:([0-9]{1,15}) *- *([0-9]{1,15})?|- *([0-9]{1,15})) *$/i;

/** Parses a Range header. Undefined for a missing or malformed header, several ranges, or another unit than bytes. */
export function wantedRange(header: string | null | undefined): WantedRange | undefined {
  const [, start, end, suffix] = RANGE.exec(header ?? '') ?? [];
  if (suffix !== undefined) return { kind: 'suffix', suffix: Number(suffix) };
  if (start === undefined) return undefined;
  const range = { kind: 'from', start: Number(start), end: end === undefined ? undefined : Number(end) } as const;
  return range.end !== undefined && range.end < range.start ? undefined : range;
}

/** Returns the first and last byte of a range in a file of `size` bytes. Undefined if no byte is in the file. */
export function satisfy(wanted: WantedRange, size: number): Part | undefined {
  const start = wanted.kind === 'suffix' ? Math.max(size - wanted.suffix, 0) : wanted.start;
  const end = wanted.kind === 'suffix' ? size - 1 : Math.min(wanted.end ?? size - 1, size - 1);
  return start <= end ? { start, end } : undefined;
}

/** Returns a Content-Range header. `size` is the size of the file in bytes. Omit `part` if the wanted range is not in the file. */
export const contentRange = (size: number, part?: Part): string =>
  `bytes ${part === undefined ? '*' : `${part.start}-${part.end}`}/${size}`;
