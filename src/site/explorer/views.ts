/** Views of the explorer, and their query strings and requests. Needs no browser. */
import { lettersOf } from '../../lists/searchFiles.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';

/** Kinds of pages, in the order in which their parameters are looked for in a query string. */
export const KINDS = ['block', 'transaction', 'rune', 'address', 'output', 'runes'] as const;
export type Kind = (typeof KINDS)[number];
export type ListName = Operation | 'activity' | 'holders' | 'balances' | 'outputs' | 'newest' | 'active' | 'day' | 'week';

/** A page of the explorer, and which window of which of its lists it shows. */
export interface View {
  readonly kind: Kind;
  /**
   * Height, `latest`, hash or transaction id of 64 hex digits with or without `0x`, address, outpoint `txid:vout` without `0x`, or a rune's
   * id, number or name in upper case without spacers. For the page `runes`, the first letters of the names to search, or empty for all
   * runes.
   */
  readonly id: string;
  /** Undefined for all records of a block, and otherwise for the first list that the mirror has. */
  readonly list?: ListName | undefined;
  /** Entries per page. Undefined for the mirror's default. */
  readonly limit?: number | undefined;
  readonly offset: number;
}

/** Lists of each kind of page. Those of a block have the records of one operation. */
export const LISTS: Readonly<Record<Kind, readonly ListName[]>> = {
  block: OPERATIONS,
  transaction: [],
  rune: ['activity', 'holders'],
  address: ['balances', 'outputs', 'activity'],
  output: [],
  runes: ['newest', 'active', 'day', 'week'],
};

export const idParameter = (kind: Kind): string => (kind === 'transaction' ? 'tx' : kind);

export const listParameter = (kind: Kind): string => (kind === 'block' ? 'operation' : 'list');

/** Matches a transaction id or a block hash. */
export const HEX = /^(?:0x)?[0-9a-f]{64}$/;

/** Id of the highest block. */
export const LATEST = 'latest';

export const viewAt = (kind: Kind, id: string): View => ({ kind, id, offset: 0 });

export const transactionOf = (outpoint: string): View => viewAt('transaction', outpoint.split(':')[0] ?? '');

/** Returns the view of a rune by its name, or by its id if requests cannot contain such a name. */
export const viewOfRune = ({ id, name }: { readonly id: string; readonly name: string }): View =>
  viewAt('rune', lettersOf(name) === name ? name : id);

/** Returns the query string of a view, without default values. */
export function searchOf({ kind, id, list, limit, offset }: View): string {
  const rest = queryOf({ [listParameter(kind)]: list, limit, offset }, '&');
  // Keeps the colon of a rune's id or an outpoint readable.
  return `?${idParameter(kind)}${id === '' ? '' : `=${encodeURIComponent(id).replaceAll('%3A', ':')}`}${rest}`;
}

/** Returns the API target of a window for a path below `runes/v1`. */
export const targetOf = (
  path: string,
  { limit, offset }: Pick<View, 'limit' | 'offset'>,
  more: Readonly<Record<string, string>> = {},
): string => `runes/v1/${path}${queryOf({ limit, offset, ...more }, '?')}`;

/** Returns a query string after `start`, without undefined values and the offset 0. Empty if there are no others. */
function queryOf(parameters: Readonly<Record<string, string | number | undefined>>, start: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && !(name === 'offset' && value === 0)) query.set(name, String(value));
  return query.size === 0 ? '' : `${start}${query}`;
}
