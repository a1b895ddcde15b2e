/**
 * The 250 recorded exchanges with Hiro's server about activity by rune and by address, and the rules that say where a
 * mirror answers differently. If no rule applies, a mirror must answer exactly as recorded. docs/api.md and
 * docs/migrating.md state the rules.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { ActivityOracle } from './activityOracle.ts';
import { ETCHING_INPUTS } from './etchingVectors.ts';

export const ACTIVITY_INPUTS = ETCHING_INPUTS;

export interface ActivityVector {
  readonly line: number;
  readonly data: 'own' | 'parent';
  readonly method: string;
  readonly path: string;
  readonly request_headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly body: unknown;
}

export const readActivityVectors = (): ActivityVector[] =>
  gunzipSync(readFileSync(new URL('../fixtures/activity/vectors.ndjson.gz', import.meta.url)))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ActivityVector);

export interface ExpectedActivity {
  /** Rules that override the recording. */
  readonly rules: readonly string[];
  readonly status: number;
  /** The text of the body. Undefined if any error with this status is right. */
  readonly body?: string;
}

const PATH = /^\/runes(?:\/v1)?\/(?:etchings\/([^/]+)|addresses\/([^/?]+))\/activity(?:\/([^/?;#]+))?(?:\?(.*))?$/;

/** Returns the expected answer of a mirror in dialect hiro. */
export function expectedActivity(vector: ActivityVector, oracle: ActivityOracle | undefined): ExpectedActivity {
  const { status, body, path, method } = vector;
  const by = (rule: string, code: number, content?: string): ExpectedActivity =>
    content === undefined ? { rules: [rule], status: code } : { rules: [rule], status: code, body: content };
  if (method === 'HEAD') return { rules: [], status, body: '' };
  if (method !== 'GET') return by('other methods get 405', 405);
  if (status === 304) return by('each answer has its own ETag', 200);
  const [, limit] = /[?&]limit=([^&]*)/.exec(path) ?? [];
  const [, offset] = /[?&]offset=([^&]*)/.exec(path) ?? [];
  if (status < 400 || status >= 500) {
    if ([limit, offset].some((text) => text !== undefined && !/^-?[0-9]+$/.test(text))) return by('numbers are decimal digits', 400);
    if (Number(offset ?? 0) > Number.MAX_SAFE_INTEGER) return by('an offset is at most 2^53 - 1', 400);
    if (/\/activity\/(?:\?.*)?$/.test(path)) return by('an empty address is malformed', 400);
  }
  if (/%FF/.test(path)) return by('malformed percent-encoding is a malformed address', 400);
  const [, rune, only, other] = PATH.exec(path) ?? [];
  const plain = rune === undefined ? undefined : decodeURIComponent(rune).replace(/[•.]/g, '').toUpperCase();
  if (plain === undefined && only === undefined)
    return status === 404 ? by('errors have one shape', 404) : { rules: [], status, body: JSON.stringify(body) };
  const written = decodeURIComponent(only ?? other ?? '');
  const address = only === undefined && other === undefined ? undefined : /^BC1[0-9A-Z]+$/.test(written) ? written.toLowerCase() : written;
  if (status === 400 && !/^[A-Z]+$/.test(plain ?? '')) return { rules: [], status, body: JSON.stringify(body) };
  if (status === 404 && (plain ?? '').length <= 100) return by('errors have one shape', 404);
  if (status === 400 && /querystring|address/.test(JSON.stringify(body))) return { rules: [], status, body: JSON.stringify(body) };
  const window = { limit: Number(limit || 20), offset: Number(offset || 0) };
  const right = oracle?.answer({ rune: plain, address, ...window }) ?? JSON.stringify({ ...window, total: 0, results: [] });
  if (status === 500) return by('numbers beyond any rune, and zero bytes, are unknown', 200, right);
  if (status === 404) return by('a long name is unknown', 200, right);
  const recorded = body as { readonly total: number; readonly results: readonly unknown[] };
  const { total } = JSON.parse(right) as { readonly total: number };
  if (JSON.stringify(body) === right) return { rules: [], status: 200, body: right };
  if (status === 400 || (plain !== undefined && !/^(?:[0-9:]+|[A-Z•]+)$/.test(decodeURIComponent(rune ?? ''))))
    return by('names are compared without case and spacers', 200, right);
  if (written !== (address ?? '')) return by('bech32 in upper case is the same address', 200, right);
  // No rule below changes the records. Only the total may differ from the recorded one.
  const withTotal = JSON.stringify({ ...window, total, results: recorded.results });
  if (window.offset >= total && recorded.total === 0) return by('the total is true past the end', 200, withTotal);
  if (only !== undefined) return by('the total of an address is its number of records', 200, withTotal);
  const isDotted = decodeURIComponent(rune ?? '').includes('•');
  if (isDotted && recorded.total === 0) return by('names are compared without case and spacers', 200, right);
  return { rules: [], status, body: JSON.stringify(body) };
}
