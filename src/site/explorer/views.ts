/** Views of the explorer, and their query strings and requests. Needs no browser. */
import { lettersOf } from '../../lists/searchFiles.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';

export interface ListView {
  readonly kind: 'block' | 'transaction';
  /** Height, `latest`, or 64 hex digits with or without `0x`. */
  readonly id: string;
  /** Selects records of this operation. Only for blocks. */
  readonly operation?: Operation | undefined;
  /** Records per page. Undefined for the mirror's default. */
  readonly limit?: number | undefined;
  readonly offset: number;
}

/** Page of a rune, an address, an output or all runes. All but outputs have lists, and the page shows one of them. */
export interface SubjectView {
  readonly kind: 'rune' | 'address' | 'output' | 'runes';
  /**
   * Address, outpoint `txid:vout` without `0x`, or a rune's id, number or name in upper case without spacers. For the
   * page `runes`, the first letters of the names to search, or empty for all runes.
   */
  readonly id: string;
  /** Undefined for the first list that the mirror has. */
  readonly list?: SubjectList | undefined;
  readonly limit?: number | undefined;
  readonly offset: number;
}

export type SubjectList = 'activity' | 'holders' | 'balances' | 'outputs' | 'newest' | 'active' | 'day' | 'week';
export const SUBJECT_LISTS: Readonly<Record<SubjectView['kind'], readonly SubjectList[]>> = {
  rune: ['activity', 'holders'],
  address: ['balances', 'outputs', 'activity'],
  output: [],
  runes: ['newest', 'active', 'day', 'week'],
};

export type FoundView = ListView | SubjectView;

/** Matches a transaction id or a block hash. */
export const HEX = /^(?:0x)?[0-9a-f]{64}$/;

export const listOf = (kind: ListView['kind'], id: string): ListView => ({ kind, id, offset: 0 });

export const runeView = (id: string): SubjectView => ({ kind: 'rune', id, offset: 0 });
export const addressView = (id: string): SubjectView => ({ kind: 'address', id, offset: 0 });
export const outputView = (outpoint: string): SubjectView => ({ kind: 'output', id: outpoint, offset: 0 });

/** Returns the view of a search for runes by the first letters of their names. */
export const runesWith = (text: string): SubjectView => ({ kind: 'runes', id: text, offset: 0 });

export const transactionOf = (outpoint: string): ListView => listOf('transaction', outpoint.split(':')[0] ?? '');

/** Returns the view of a rune by its name, or by its id if requests cannot contain such a name. */
export const viewOfRune = ({ id, name }: { readonly id: string; readonly name: string }): SubjectView =>
  runeView(lettersOf(name) === name ? name : id);

/** Id of the highest block. */
export const LATEST = 'latest';

/**
 * Returns the view of the same hash as a transaction instead of a block, or as a block instead of a transaction.
 * Undefined for heights.
 */
export function otherReading(view: ListView): ListView | undefined {
  return HEX.test(view.id) ? listOf(view.kind === 'block' ? 'transaction' : 'block', view.id) : undefined;
}

/** Returns the query string of a view, without default values. */
export function searchOf(view: FoundView): string {
  const query = new URLSearchParams();
  if ('operation' in view && view.operation !== undefined) query.set('operation', view.operation);
  if ('list' in view && view.list !== undefined) query.set('list', view.list);
  if (view.limit !== undefined) query.set('limit', String(view.limit));
  if (view.offset !== 0) query.set('offset', String(view.offset));
  const rest = query.size === 0 ? '' : `&${query}`;
  // Keeps the colon of a rune's id or an outpoint readable.
  const id = view.id === '' ? '' : `=${encodeURIComponent(view.id).replaceAll('%3A', ':')}`;
  return `?${view.kind === 'transaction' ? 'tx' : view.kind}${id}${rest}`;
}

/** Returns the API target of a list, relative to the mirror's base URL. */
export function apiTarget(view: ListView): string {
  const path = `${view.kind === 'block' ? 'blocks' : 'transactions'}/${view.id}/activity`;
  return targetOf(path, view, view.operation === undefined ? {} : { operation_type: view.operation });
}

/** Returns the target of a window for a path below `runes/v1`. */
export function targetOf(
  path: string,
  { limit, offset }: { readonly limit?: number | undefined; readonly offset: number },
  more: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams();
  if (limit !== undefined) query.set('limit', String(limit));
  if (offset !== 0) query.set('offset', String(offset));
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  return `runes/v1/${path}${query.size === 0 ? '' : `?${query}`}`;
}
