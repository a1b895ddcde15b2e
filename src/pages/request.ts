/**
 * Parses request targets.
 *
 * docs/api.md has the rules and their sources. Refusal messages are identical to those of the recorded
 * server, because existing clients read them.
 */
import { parseBlockId, parseHexId } from './ids.ts';
import { type ActivityList, OPERATIONS, type Operation } from './lists.ts';
import { defaultLimit, maximumLimit, type Site } from './site.ts';

/** A window of a list: `limit` and `offset` after defaults, both in records. */
export interface Window {
  readonly limit: number;
  readonly offset: number;
}

export type Route =
  | { readonly kind: 'list'; readonly list: ActivityList; readonly window: Window }
  | { readonly kind: 'status' }
  | { readonly kind: 'refusal'; readonly message: string }
  /** Under `/runes` but not an API route: a file of the build, or a 404. */
  | { readonly kind: 'unknown' }
  /** Outside `/runes`; the host decides the answer. */
  | { readonly kind: 'outside' };

const TX_ID_RULE = 'params/tx_id must match pattern "^[a-fA-F0-9]{64}$"';
const BLOCK_RULE =
  'params/block must match pattern "^[0-9]+$", params/block must match pattern "^[0]{8}[a-fA-F0-9]{56}$", ' +
  'params/block must match a schema in anyOf';
const NO_OPERATIONS = 'querystring/operation_type is not available: this mirror was built without lists by operation';
const refusal = (message: string) => ({ kind: 'refusal', message }) as const;

/** A route before its query is read. */
type Path = Exclude<Route, { readonly kind: 'list' }> | { readonly kind: 'list'; readonly list: ActivityList };

/**
 * Parses a request target: path and query, still percent-encoded, e.g. `/runes/v1/blocks/840000/activity?limit=60`.
 * Never throws.
 */
export function parseTarget(target: string, site: Site): Route {
  const path = parsePath(target);
  const queryAt = target.indexOf('?');
  return path.kind === 'list' ? withWindow(path.list, queryAt < 0 ? '' : target.slice(queryAt + 1), site) : path;
}

/** Parses the path of a request target and ignores its query. */
export function parsePath(target: string): Path {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  // Split before decoding, so that an encoded slash never makes a new segment.
  const segments = path.split('/').slice(1).map(decode);
  if (segments[0] !== 'runes') return { kind: 'outside' };
  const rest = segments.slice(segments[1] === 'v1' ? 2 : 1);
  if (rest.length === 0 || (rest.length === 1 && rest[0] === '')) return { kind: 'status' };
  const [collection, id, action] = rest;
  if (rest.length !== 3 || action !== 'activity' || id === undefined) return { kind: 'unknown' };
  if (collection === 'transactions') {
    const txId = parseHexId(id);
    return txId === undefined ? refusal(TX_ID_RULE) : { kind: 'list', list: { kind: 'transaction', txId } };
  }
  if (collection === 'blocks') {
    const block = parseBlockId(id);
    return block === undefined ? refusal(BLOCK_RULE) : { kind: 'list', list: { kind: 'block', block } };
  }
  return { kind: 'unknown' };
}

function withWindow(list: ActivityList, query: string, site: Site): Route {
  const values = parseQuery(query);
  // The recorded server reports the offset before the limit, and both before the operation.
  const offset = parseInteger('offset', values.get('offset'), 0, 0, Number.MAX_SAFE_INTEGER);
  if (typeof offset === 'string') return refusal(offset);
  const limit = parseInteger('limit', values.get('limit'), defaultLimit(site), 1, maximumLimit(site));
  if (typeof limit === 'string') return refusal(limit);
  const window: Window = { limit, offset };
  const operations = values.get('operation_type');
  if (list.kind === 'transaction' || operations === undefined) return { kind: 'list', list, window };

  const operation = OPERATIONS.find((name) => name === operations[0]);
  if (operations.length > 1) return refusal(operationRule(['must be string', 'must be equal to constant']));
  if (operation === undefined) return refusal(operationRule(['must be equal to constant']));
  if (!site.operationPages) return refusal(NO_OPERATIONS);
  return { kind: 'list', list: withOperation(list, operation), window };
}

const withOperation = (list: ActivityList & { kind: 'block' }, operation: Operation): ActivityList => ({
  ...list,
  operation,
});

/** The recorded message repeats the broken rules for each of the five values. */
function operationRule(rules: string[]): string {
  const each = OPERATIONS.flatMap(() => rules);
  return [...each, 'must match a schema in anyOf'].map((rule) => `querystring/operation_type ${rule}`).join(', ');
}

/**
 * Returns the number, or the message of the rule that it breaks. As recorded, a parameter given twice is not an
 * integer.
 */
function parseInteger(
  name: string,
  values: readonly string[] | undefined,
  absent: number,
  minimum: number,
  maximum: number,
): number | string {
  if (values === undefined) return absent;
  const [text] = values;
  if (values.length !== 1 || text === undefined || !/^-?[0-9]+$/.test(text)) return `querystring/${name} must be integer`;
  const number = Number(text);
  if (text.startsWith('-') || number < minimum) return `querystring/${name} must be >= ${minimum}`;
  if (number > maximum) return `querystring/${name} must be <= ${maximum}`;
  return number;
}

/** Groups parameters by name, with all their values in order. `+` is a space, as in every form-encoded query. */
function parseQuery(query: string): Map<string, string[]> {
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

/** Decodes percent-encoding. Returns malformed text unchanged, because it breaks the rules anyway. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
