/** Parses request targets (docs/api.md). Refusal messages are those of Hiro's server, because existing clients read them. */
import { type ActivityList, OPERATIONS } from './blockAndTransactionLists.ts';
import type { BuiltSite } from './mirrorOptions.ts';
import { type FurtherPath, type FurtherRequest, parseFurther, parseFurtherPath } from './optionalEndpoints.ts';
import { parseBlockId, parseHexId } from './parseIds.ts';
import { decode, parseQuery, type Window, windowIn } from './parseQuery.ts';

type Route =
  | { readonly kind: 'list'; readonly list: ActivityList; readonly window: Window }
  | FurtherRequest
  /** Part of the API, but not of this mirror. */
  | { readonly kind: 'absent'; readonly message: string }
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

type Path =
  | Exclude<Route, { readonly kind: 'list' | 'further' | 'absent' }>
  | { readonly kind: 'list'; readonly list: ActivityList }
  | FurtherPath;

/** Parses a request target: path and query, still percent-encoded, e.g. `/runes/v1/blocks/840000/activity?limit=60`. Never throws. */
export function parseTarget(target: string, site: BuiltSite): Route {
  const path = parsePath(target);
  if (path.kind !== 'list' && path.kind !== 'further') return path;
  const query = target.slice(pathOf(target).length + 1);
  return path.kind === 'list' ? withWindow(path.list, query, site) : parseFurther(path, query, site);
}

const pathOf = (target: string): string => target.split('?', 1)[0] ?? '';

export function parsePath(target: string): Path {
  const path = pathOf(target);
  // Split before decoding, so that an encoded slash never makes a new segment.
  const segments = path.split('/').slice(1).map(decode);
  if (segments[0] !== 'runes') return { kind: 'outside' };
  const begin = segments[1] === 'v1' ? 2 : 1;
  const rest = segments.slice(begin);
  if (rest.length === 0 || (rest.length === 1 && rest[0] === '')) return { kind: 'status' };
  const [collection, id, action] = rest;
  // On Hiro's server, `;` and `#` end a path too.
  const [beforeMark = ''] = path.split(/[;#]/, 1);
  const further = parseFurtherPath(beforeMark.split('/').slice(1 + begin));
  if (further !== undefined) return further;
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

function withWindow(list: ActivityList, query: string, site: BuiltSite): Route {
  const values = parseQuery(query);
  const window = windowIn(values, site);
  if (typeof window === 'string') return refusal(window);
  const operations = values.get('operation_type');
  if (list.kind === 'transaction' || operations === undefined) return { kind: 'list', list, window };

  const operation = OPERATIONS.find((name) => name === operations[0]);
  if (operations.length > 1) return refusal(operationRule(['must be string', 'must be equal to constant']));
  if (operation === undefined) return refusal(operationRule(['must be equal to constant']));
  if (!site.operationPages) return refusal(NO_OPERATIONS);
  return { kind: 'list', list: { ...list, operation }, window };
}

/** Returns the message of Hiro's server, which repeats the broken rules for each of the five operations. */
function operationRule(rules: string[]): string {
  const each = OPERATIONS.flatMap(() => rules);
  return [...each, 'must match a schema in anyOf'].map((rule) => `querystring/operation_type ${rule}`).join(', ');
}
