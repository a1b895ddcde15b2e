/** Reads text of the search field, and query strings of pages, as views of the explorer. Needs no browser. */
import { sha256 } from '../../format/sha256.ts';
import { lettersOf } from '../../lists/searchFiles.ts';
import { withoutZeros } from '../../pages/parseIds.ts';
import { scriptOfAddress } from '../../runes/address.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { HEX, idParameter, KINDS, type Kind, LATEST, LISTS, listParameter, type View, viewAt } from './views.ts';

/** Problem of a text that cannot be looked up. */
export interface Misread {
  readonly problem: string;
  /** Link to a view that the user may have meant. */
  readonly instead?: { readonly label: string; readonly view: View };
}

/** View that a query string names. In a problem, `text` is the text that cannot be looked up. */
export type Asked = { readonly kind: 'overview' } | { readonly kind: 'problem'; readonly text: string; readonly said: Misread } | View;

const bare = (id: string): string => id.replace(/^0x/, '');

/** True if 64 hex digits look like a block hash. Because of proof of work, block hashes begin with zeros. */
const isBlockHash = (hex: string): boolean => bare(hex).startsWith('00000000');

/** Matches the number of a rune, or its id. */
const RUNE_NUMBERS = /^[0-9]{1,15}(?::[0-9]{1,15})?$/;
const BECH32 = /^(?:bc|tb|bcrt)1[0-9a-z]{6,90}$/;
const BASE58 = /^(?=.*[1-9])[123mn][1-9A-HJ-NP-Za-km-z]{25,34}$/;

const hash256 = (bytes: Uint8Array): Uint8Array => sha256(sha256(bytes));

/** The problem of an address with a wrong checksum, or undefined. Links to its page all the same: invented data has such addresses. */
export function wrongAddress(text: string): Misread | undefined {
  const address = addressIn(text);
  const isAddress = (text: string) => Object.values(NETWORKS).some((network) => scriptOfAddress(text, network, hash256) !== undefined);
  if (address === undefined || isAddress(address)) return undefined;
  return {
    problem: 'The checksum of this address is wrong, so some of its characters are. Copy the whole address again.',
    instead: { label: 'Look it up anyway', view: viewAt('address', address) },
  };
}

function addressIn(text: string): string | undefined {
  const lower = text.toLowerCase();
  return BECH32.test(lower) ? lower : BASE58.test(text) ? text : undefined;
}

/** Parses an outpoint, `txid:vout`. Undefined for other text. */
function readOutpoint(text: string): View | undefined {
  const [, txId, index] = /^(?:0x)?([0-9a-f]{64}):([0-9]{1,10})$/.exec(text.trim().toLowerCase()) ?? [];
  return txId === undefined || index === undefined ? undefined : viewAt('output', `${txId}:${withoutZeros(index)}`);
}

/** Parses a rune's id, number or name, with or without spacers. Undefined for other text. */
function readRune(text: string): View | undefined {
  const id = RUNE_NUMBERS.test(text) ? text.split(':').map(withoutZeros).join(':') : lettersOf(text);
  return id === undefined ? undefined : viewAt('rune', id);
}

/**
 * Parses text of the search field: a transaction id, an outpoint, a block height or hash, a rune, an address, `latest`, or the URL of one
 * of these at an explorer. Returns the problem for other text.
 */
export function readLookUp(text: string): View | Misread {
  const trimmed = text.trim();
  const id = trimmed.toLowerCase();
  if (id === '') return { problem: 'Type a rune, an address, a transaction id, or a block height or hash.' };
  if (HEX.test(id)) return viewAt(isBlockHash(id) ? 'block' : 'transaction', id);
  if (id === LATEST) return viewAt('block', id);
  const height = id.replace(/^#|[,_ ]/g, '');
  if (/^[0-9]{1,16}$/.test(height)) return viewAt('block', withoutZeros(height));
  const address = addressIn(trimmed);
  if (address !== undefined) return wrongAddress(address) ?? viewAt('address', address);
  return readOutpoint(id) ?? readRune(trimmed) ?? readUrl(trimmed) ?? misreadOf(id);
}

/** Parses the URL of a transaction, output, block, rune or address at any explorer. Undefined for other text. */
function readUrl(text: string): View | Misread | undefined {
  const found = idInUrl(text);
  if (found === undefined) return undefined;
  if (found.kind === 'unknown') return { problem: 'This URL names neither a transaction, an output, a block, a rune nor an address.' };
  return found.kind === 'rune' ? (readRune(found.id) ?? misreadOf(found.id)) : readLookUp(found.id);
}

/** The subject of a URL. */
type NamedInUrl = { readonly kind: 'rune' | 'other'; readonly id: string } | { readonly kind: 'unknown' };

const RUNES = /^(?:runes?|tick)$/;
/** After one of these words comes a rune, even if it looks like a common word of URLs: runes may be named BLOCK or TOKEN. */
const NAMED = /^(?:rune|tick)$/;
const OTHERS = /^(?:tx|txid|transactions?|outputs?|outpoint|blocks?|block-height|address|addresses)$/;
const isKind = (word: string): boolean => RUNES.test(word) || OTHERS.test(word);

/** Words that URLs have between the type and the id. */
const BETWEEN = new Set(['detail', 'details', 'market', 'info', 'etchings', 'v1', 'bitcoin', 'mainnet', 'token', 'name', 'height', 'hash']);

/** Finds the id in the URL of an explorer, after a word for its type: `https://mempool.space/tx/<id>`. Undefined for other text. */
function idInUrl(text: string): NamedInUrl | undefined {
  const url = /^https?:\/\//i.test(text) ? text : /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\/\S/i.test(text) ? `https://${text}` : undefined;
  if (url === undefined) return undefined;
  let parts: string[];
  try {
    const { pathname, searchParams } = new URL(url);
    // Query parameters come first, because on market pages and in this explorer they have the subject.
    parts = [...[...searchParams].flat(), ...pathname.split('/').map(decodeURIComponent)];
  } catch {
    return { kind: 'unknown' };
  }
  for (const [i, part] of parts.entries()) {
    const word = part.toLowerCase();
    const after = parts.slice(i + 1).filter((one) => one !== '');
    const id = NAMED.test(word) ? after[0] : after.find((one) => !BETWEEN.has(one.toLowerCase()));
    if (!isKind(word) || id === undefined || (isKind(id.toLowerCase()) && !NAMED.test(word))) continue;
    const kind = RUNES.test(word) ? 'rune' : 'other';
    // For an inscription (`<txid>i0`), returns the id of its transaction.
    return { kind, id: kind === 'rune' ? id : id.replace(/^((?:0x)?[0-9a-f]{64})i[0-9]+$/i, '$1') };
  }
  return { kind: 'unknown' };
}

function misreadOf(id: string): Misread {
  const ids = 'Transaction ids and block hashes have 64 hex digits';
  const digits = bare(id);
  if (/^[0-9a-f]+$/.test(digits)) return { problem: `${ids}; this has ${digits.length}. Copy the whole id again.` };
  const [odd] = /[^0-9a-f]/u.exec(digits) ?? [''];
  if (digits.length > 40) return { problem: `${ids}, 0 to 9 and a to f; this has “${odd}” in it. Copy the id again.` };
  return { problem: `This is neither a rune, an address, a transaction nor a block. ${ids}, and names of runes at most 28 letters.` };
}

export const isMisread = (read: View | Misread): read is Misread => 'problem' in read;

/** Parses a number of a query string. Returns NaN for other text, so that the API refuses it. */
const numberOf = (text: string | null): number | undefined =>
  text === null || text === '' ? undefined : /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;

/** Parses a query string such as `?block=840000&operation=mint&limit=60&offset=60`, `?rune=840000:3` or `?runes`. */
export function viewOf(search: string): Asked {
  const query = new URLSearchParams(search);
  const kind = KINDS.find((each) => query.has(idParameter(each)));
  if (kind === undefined) return { kind: 'overview' };
  const text = query.get(idParameter(kind)) ?? '';
  const id = idOf(kind, text);
  if (typeof id !== 'string') return { kind: 'problem', text, said: id };
  const list = LISTS[kind].find((name) => name === query.get(listParameter(kind)));
  return { kind, id, list, limit: numberOf(query.get('limit')), offset: numberOf(query.get('offset')) ?? 0 };
}

/** Parses the id of a page. The kind of page decides what it is, not the digits. */
function idOf(kind: Kind, text: string): string | Misread {
  if (kind === 'runes') return text.trim();
  if (kind === 'rune') return readRune(text)?.id ?? { problem: 'This is neither an id, a number nor a name of a rune.' };
  if (kind === 'output')
    return readOutpoint(text)?.id ?? { problem: 'Outputs are the 64 hex digits of a transaction id, a colon, and an index.' };
  if (kind === 'address') return text.trim() || { problem: 'This is not an address.' };
  const read = readLookUp(text);
  if (isMisread(read)) return read;
  if (HEX.test(read.id) || (kind === 'block' && read.kind === 'block')) return read.id;
  const problem = kind === 'block' ? 'Blocks have a height, or a hash of 64 hex digits.' : 'Transaction ids have 64 hex digits.';
  return { problem, instead: { label: read.kind === 'block' ? `Show block ${read.id}` : 'Show it', view: read } };
}
