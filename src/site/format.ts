/**
 * How the pages for people spell numbers, ids and times. Pure, and without a page: the build uses it for what stands in the HTML.
 */

/** A decimal string with its whole part in groups of three: `1234567.50` becomes `1,234,567.50`. Never read as a number: amounts have up to 39 digits. */
export function groupDigits(decimal: string | number): string {
  const [whole = '', ...fraction] = String(decimal).split('.');
  return [whole.replace(/\B(?=(?:[0-9]{3})+$)/g, ','), ...fraction].join('.');
}

/** A number of things: `1,227 records`, `1 record`. */
export const count = (number: number, one: string): string => `${groupDigits(number)} ${one}${number === 1 ? '' : 's'}`;

/** A long id with its middle left out: `0xe79134…8a1375`. Short text stays as it is. `digits` are shown at each end. */
export function shorten(id: string, digits = 6): string {
  const prefix = id.startsWith('0x') ? '0x' : '';
  const rest = id.slice(prefix.length);
  return rest.length <= digits * 2 + 3 ? id : `${prefix}${rest.slice(0, digits)}…${rest.slice(-digits)}`;
}

/** The last second that JavaScript has a date for. */
const LAST_SECOND = 8_640_000_000_000;

/** A time in seconds since 1970 as `2024-04-20 00:09:27 UTC`; what is no date stays a number. */
export const utc = (seconds: number): string =>
  seconds <= LAST_SECOND ? `${isoTime(seconds).replace('T', ' ').replace('Z', '')} UTC` : String(seconds);

/** The same as `2024-04-20T00:09:27Z`, for `<time datetime>`. */
export const isoTime = (seconds: number): string =>
  seconds <= LAST_SECOND ? new Date(seconds * 1000).toISOString().replace(/\.[0-9]+Z$/, 'Z') : '';

const UNITS = [
  ['year', 31_556_952],
  ['month', 2_629_746],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** A time in words, as seen from `now`, both in seconds: `3 days ago`, `in 20 years`. */
export function inWords(seconds: number, now: number): string {
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  const difference = seconds - now;
  const [unit, length] = UNITS.find(([, each]) => Math.abs(difference) >= each) ?? ['second', 1];
  return unit === 'second' ? 'just now' : words.format(Math.trunc(difference / length), unit);
}

/** Runs of heights, both ends included, in words: `840,000 and 2,000,001 to 2,000,030`. Of many runs the middle is left out. */
export function heightsInWords(runs: readonly (readonly [first: number, last: number])[]): string {
  const each = runs.map(([first, last]) => (first === last ? groupDigits(first) : `${groupDigits(first)} to ${groupDigits(last)}`));
  const shown = each.length > 8 ? [...each.slice(0, 4), '…', ...each.slice(-3)] : each;
  return shown.length < 2 ? (shown[0] ?? 'none') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
