/** Decodes queries of requests, and parses windows of lists. Refusal messages are those of Hiro's server (docs/api.md). */
import { defaultLimit, maximumLimit, type Site } from './mirrorOptions.ts';

/** A window of a list: `limit` and `offset` after defaults, both in entries of the list. */
export interface Window {
  readonly limit: number;
  readonly offset: number;
}

/** Returns the window that a query asks for, or an error message if `offset` or `limit` is invalid. */
export function windowIn(values: ReadonlyMap<string, readonly string[]>, site: Site): Window | string {
  // Hiro's server reports the offset before the limit.
  const offset = parseInteger(values, 'offset', 0, 0, Number.MAX_SAFE_INTEGER);
  if (typeof offset === 'string') return offset;
  const limit = parseInteger(values, 'limit', defaultLimit(site), 1, maximumLimit(site));
  return typeof limit === 'string' ? limit : { limit, offset };
}

/** Returns the number, or an error message if the parameter is invalid. A repeated parameter is invalid, as on Hiro's server. */
function parseInteger(query: ReadonlyMap<string, readonly string[]>, name: string, absent: number, minimum: number, maximum: number) {
  const values = query.get(name);
  if (values === undefined) return absent;
  const [text] = values;
  if (values.length !== 1 || text === undefined || !/^-?[0-9]+$/.test(text)) return `querystring/${name} must be integer`;
  const number = Number(text);
  if (text.startsWith('-') || number < minimum) return `querystring/${name} must be >= ${minimum}`;
  if (number > maximum) return `querystring/${name} must be <= ${maximum}`;
  return number;
}

/** Returns the values of each parameter, in the order of the query. Decodes `+` as a space, as in form-encoded queries. */
export function parseQuery(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode((at < 0 ? pair : pair.slice(0, at)).replaceAll('+', ' '));
    const value = at < 0 ? '' : decode(pair.slice(at + 1).replaceAll('+', ' '));
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  }
  return values;
}

/** Decodes percent-encoding. Returns malformed text unchanged: the checks of the parameters refuse such text later. */
export const decode = (text: string): string => decodeStrictly(text) ?? text;

/** Decodes percent-encoding; undefined for malformed text. */
export function decodeStrictly(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
