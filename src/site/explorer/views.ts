/**
 * Views of the explorer and their query strings. Needs no browser.
 */
import { OPERATIONS, type Operation } from '../../pages/lists.ts';

/** A window of a list. */
export interface ListView {
  readonly kind: 'block' | 'transaction';
  /** A height, or 64 hex digits with or without `0x`. */
  readonly id: string;
  /** Only records of this operation; only for blocks. */
  readonly operation?: Operation | undefined;
  /** Records per page; undefined for the mirror's default. */
  readonly limit?: number | undefined;
  readonly offset: number;
}

export type View = { readonly kind: 'overview' } | { readonly kind: 'problem'; readonly text: string; readonly said: Misread } | ListView;

/** Why a text cannot be looked up. */
export interface Misread {
  readonly problem: string;
  /** A link to what the user may have meant. */
  readonly instead?: { readonly label: string; readonly view: ListView };
}

const HEX = /^(?:0x)?[0-9a-f]{64}$/;
const bare = (id: string): string => id.replace(/^0x/, '');

/** True when 64 hex digits look like a block hash: proof of work makes these begin with zeros. */
const isBlockHash = (hex: string): boolean => bare(hex).startsWith('00000000');

const listOf = (kind: ListView['kind'], id: string): ListView => ({ kind, id, offset: 0 });

/**
 * Reads a text of the search field: a transaction id, block height or block hash. Returns the problem for other text.
 */
export function readLookUp(text: string): ListView | Misread {
  const id = text.trim().toLowerCase();
  if (id === '') return { problem: 'Type a transaction id, a block height or a block hash.' };
  if (HEX.test(id)) return listOf(isBlockHash(id) ? 'block' : 'transaction', id);
  const height = id.replace(/^#|[,_ ]/g, '');
  if (/^[0-9]{1,16}$/.test(height)) return listOf('block', height.replace(/^0+(?=[0-9])/, ''));
  return misreadOf(id);
}

function misreadOf(id: string): Misread {
  const [, runeBlock] = /^([0-9]{1,16}):[0-9]+$/.exec(id) ?? [];
  if (runeBlock !== undefined) {
    const problem = 'This is a rune id. Look up a transaction or a block instead: the number before the colon is the block of its etching.';
    return { problem, instead: { label: `Show block ${runeBlock}`, view: listOf('block', runeBlock) } };
  }
  const [, txId] = /^((?:0x)?[0-9a-f]{64}):[0-9]+$/.exec(id) ?? [];
  if (txId !== undefined) {
    const problem = 'This is an output. Look up a transaction or a block instead: the digits before the colon are its transaction id.';
    return { problem, instead: { label: 'Show the transaction', view: listOf('transaction', txId) } };
  }
  const ids = 'Transaction ids and block hashes have 64 hex digits';
  const digits = bare(id);
  if (/^(?:bc1|tb1|bcrt1)[0-9a-z]{6,}$/.test(id)) return { problem: 'This is an address. Only transactions and blocks can be looked up.' };
  if (/^[0-9a-f]+$/.test(digits)) return { problem: `${ids}; this has ${digits.length}. Copy the whole id again.` };
  const [odd] = /[^0-9a-f]/u.exec(digits) ?? [''];
  if (digits.length > 40) return { problem: `${ids}, 0 to 9 and a to f; this has “${odd}” in it. Copy the id again.` };
  return { problem: `This is neither a transaction id, a block height nor a block hash. ${ids}, and heights are integers.` };
}

/** True when a text could not be read. */
export const isMisread = (read: ListView | Misread): read is Misread => 'problem' in read;

/** Returns the view of the same 64 digits as the other kind of id; undefined for heights. */
export function otherReading(view: ListView): ListView | undefined {
  return HEX.test(view.id) ? listOf(view.kind === 'block' ? 'transaction' : 'block', view.id) : undefined;
}

/** Reads a number of a query string. Returns NaN for other text, so that the API refuses it. */
const numberOf = (text: string | null): number | undefined =>
  text === null || text === '' ? undefined : /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;

/** Reads a query string such as `?block=840000&operation=mint&limit=60&offset=60` or `?tx=<id>`. */
export function viewOf(search: string): View {
  const query = new URLSearchParams(search);
  const [block, tx] = [query.get('block'), query.get('tx')];
  const text = block ?? tx;
  if (text === null) return { kind: 'overview' };
  const read = readLookUp(text);
  if (isMisread(read)) return { kind: 'problem', text, said: read };
  // The parameter's name decides the kind, not the digits.
  const kind = block === null ? 'transaction' : 'block';
  if (kind === 'transaction' && !HEX.test(read.id)) {
    const said = { problem: 'Transaction ids have 64 hex digits.', instead: { label: `Show block ${read.id}`, view: read } };
    return { kind: 'problem', text, said };
  }
  const operation = OPERATIONS.find((name) => kind === 'block' && name === query.get('operation'));
  return { kind, id: read.id, operation, limit: numberOf(query.get('limit')), offset: numberOf(query.get('offset')) ?? 0 };
}

/** Returns the query string of a list, without default values. */
export function searchOf(view: ListView): string {
  const query = new URLSearchParams({ [view.kind === 'block' ? 'block' : 'tx']: view.id });
  if (view.operation !== undefined) query.set('operation', view.operation);
  if (view.limit !== undefined) query.set('limit', String(view.limit));
  if (view.offset !== 0) query.set('offset', String(view.offset));
  return `?${query}`;
}

/** Returns the API target of a view, relative to the mirror's base URL. */
export function apiTarget(view: ListView): string {
  const query = new URLSearchParams();
  if (view.limit !== undefined) query.set('limit', String(view.limit));
  if (view.offset !== 0) query.set('offset', String(view.offset));
  if (view.operation !== undefined) query.set('operation_type', view.operation);
  const text = query.size === 0 ? '' : `?${query}`;
  return `runes/v1/${view.kind === 'block' ? 'blocks' : 'transactions'}/${view.id}/activity${text}`;
}
