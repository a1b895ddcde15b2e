/** Formats numbers, ids and times for the explorer. Uses no DOM, because builds also format HTML with these functions. */

/**
 * Adds thousands separators to the integer part of a decimal string, and omits zeros at its end: `1234567.50` becomes `1,234,567.5`. Does
 * not convert the string to a number, because amounts have up to 39 digits.
 */
export function groupDigits(decimal: string | number | bigint): string {
  const [whole = '', fraction = ''] = String(decimal).split('.');
  const decimals = fraction.replace(/0+$/, '');
  return `${whole.replace(/\B(?=(?:[0-9]{3})+$)/g, ',')}${decimals === '' ? '' : `.${decimals}`}`;
}

/** Formats a count with its noun: `1,227 records`, `1 record`. */
export const count = (number: number, one: string, many = `${one}s`): string => `${groupDigits(number)} ${number === 1 ? one : many}`;

/** Shortens a long id to its first and last `digits`: `0xe79134…8a1375`. Returns short text unchanged. */
export function shorten(id: string, digits = 6): string {
  const prefix = id.startsWith('0x') ? '0x' : '';
  const rest = id.slice(prefix.length);
  return rest.length <= digits * 2 + 3 ? id : `${prefix}${rest.slice(0, digits)}…${rest.slice(-digits)}`;
}

/** Last second of JavaScript's date range. */
const LAST_SECOND = 8_640_000_000_000;

/** Formats seconds since 1970 as `2024-04-20 00:09:27 UTC`. Above the date range, returns the number as text. */
export const utc = (seconds: number): string =>
  seconds <= LAST_SECOND ? `${isoTime(seconds).replace('T', ' ').replace('Z', '')} UTC` : String(seconds);

/** Formats seconds since 1970 as `2024-04-20 02:09:27 CEST`. Undefined if the reader's time zone is UTC, and above the date range. */
export function localTime(seconds: number): string | undefined {
  const date = new Date(seconds * 1000);
  // Uses the Swedish locale, because its dates have the same format as the dates of `utc`.
  return seconds > LAST_SECOND || date.getTimezoneOffset() === 0
    ? undefined
    : date.toLocaleString('sv', { dateStyle: 'short', timeStyle: 'long' });
}

/** Formats seconds since 1970 as `2024-04-20T00:09:27Z` for `<time datetime>`. Empty above the date range. */
export const isoTime = (seconds: number): string =>
  seconds <= LAST_SECOND ? new Date(seconds * 1000).toISOString().replace(/\.[0-9]+Z$/, 'Z') : '';

const UNITS = [
  ['year', 31_556_952],
  ['month', 2_629_746],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** Formats a time relative to `now`, both in seconds: `3 days ago`, `in 20 years`. */
export function relativeTime(seconds: number, now: number): string {
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  const difference = seconds - now;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(difference) >= each) ?? ['second', 1];
  return unit === 'second' ? 'just now' : format.format(Math.trunc(difference / length), unit);
}

/**
 * Formats ranges of heights, both ends inclusive: `840,000 and 2,000,001 to 2,000,030`. Shows only the first four and the last three of
 * more than eight ranges.
 */
export function formatHeights(runs: readonly (readonly [first: number, last: number])[]): string {
  const each = runs.map(([first, last]) => (first === last ? groupDigits(first) : `${groupDigits(first)} to ${groupDigits(last)}`));
  const shown = each.length > 8 ? [...each.slice(0, 4), '…', ...each.slice(-3)] : each;
  return shown.length < 2 ? (shown[0] ?? 'none') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
