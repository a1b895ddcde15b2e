/** Reads text of the search field, and query strings of pages, as views of the explorer. Needs no browser. */
import { sha256 } from '../../format/sha256.ts';
import { lettersOf } from '../../lists/searchFiles.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { withoutZeros } from '../../pages/parseIds.ts';
import { hasRightChecksum } from '../../runes/address.ts';
import { idInUrl } from './otherSites.ts';
import { addressView, type FoundView, HEX, LATEST, listOf, outputView, runeView, SUBJECT_LISTS, type SubjectView } from './views.ts';

/** Problem of a text that cannot be looked up. */
export interface Misread {
  readonly problem: string;
  /** Link to a view that the user may have meant. */
  readonly instead?: { readonly label: string; readonly view: FoundView };
}

/** View that a query string names. In a problem, `text` is the text that cannot be looked up. */
export type View = { readonly kind: 'overview' } | { readonly kind: 'problem'; readonly text: string; readonly said: Misread } | FoundView;

const bare = (id: string): string => id.replace(/^0x/, '');

/** True if 64 hex digits look like a block hash. Because of proof of work, block hashes begin with zeros. */
const isBlockHash = (hex: string): boolean => bare(hex).startsWith('00000000');

const RUNE_ID = /^([0-9]{1,15}):([0-9]{1,15})$/;
const BECH32 = /^(?:bc|tb|bcrt)1[0-9a-z]{6,90}$/;
const BASE58 = /^(?=.*[1-9])[123mn][1-9A-HJ-NP-Za-km-z]{25,34}$/;

const hash256 = (bytes: Uint8Array): Uint8Array => sha256(sha256(bytes));

/**
 * Returns the problem of an address with a wrong checksum. Undefined for other text. The problem has a link to the page
 * of this address, because invented data of a mirror may have such addresses.
 */
export function wrongAddress(text: string): Misread | undefined {
  const address = addressIn(text);
  if (address === undefined || hasRightChecksum(address, hash256)) return undefined;
  return {
    problem: 'The checksum of this address is wrong, so some of its characters are. Copy the whole address again.',
    instead: { label: 'Look it up anyway', view: addressView(address) },
  };
}

function addressIn(text: string): string | undefined {
  const lower = text.toLowerCase();
  return BECH32.test(lower) ? lower : BASE58.test(text) ? text : undefined;
}

/** Parses an outpoint, `txid:vout`. Undefined for other text. */
function readOutpoint(text: string): SubjectView | undefined {
  const [, txId, index] = /^(?:0x)?([0-9a-f]{64}):([0-9]{1,10})$/.exec(text.trim().toLowerCase()) ?? [];
  return txId === undefined || index === undefined ? undefined : outputView(`${txId}:${withoutZeros(index)}`);
}

/** Parses a rune's id, number or name, with or without spacers. Undefined for other text. */
function readRune(text: string): SubjectView | undefined {
  const [, height, index] = RUNE_ID.exec(text) ?? [];
  if (height !== undefined && index !== undefined) return runeView(`${withoutZeros(height)}:${withoutZeros(index)}`);
  const id = /^[0-9]{1,15}$/.test(text) ? withoutZeros(text) : lettersOf(text);
  return id === undefined ? undefined : runeView(id);
}

/**
 * Parses text of the search field: a transaction id, an outpoint, a block height or hash, a rune, an address, `latest`,
 * or the URL of one of these at an explorer. Returns the problem for other text.
 */
export function readLookUp(text: string): FoundView | Misread {
  const trimmed = text.trim();
  const id = trimmed.toLowerCase();
  if (id === '') return { problem: 'Type a rune, an address, a transaction id, or a block height or hash.' };
  if (HEX.test(id)) return listOf(isBlockHash(id) ? 'block' : 'transaction', id);
  if (id === LATEST) return listOf('block', id);
  const height = id.replace(/^#|[,_ ]/g, '');
  if (/^[0-9]{1,16}$/.test(height)) return listOf('block', withoutZeros(height));
  const address = addressIn(trimmed);
  if (address !== undefined) return wrongAddress(address) ?? addressView(address);
  return readOutpoint(id) ?? readRune(trimmed) ?? readUrl(trimmed) ?? misreadOf(id);
}

/** Parses the URL of a transaction, output, block, rune or address at any explorer. Undefined for other text. */
function readUrl(text: string): FoundView | Misread | undefined {
  const found = idInUrl(text);
  if (found === undefined) return undefined;
  if (found.kind === 'unknown') return { problem: 'This URL names neither a transaction, an output, a block, a rune nor an address.' };
  return found.kind === 'rune' ? (readRune(found.id) ?? misreadOf(found.id)) : readLookUp(found.id);
}

function misreadOf(id: string): Misread {
  const ids = 'Transaction ids and block hashes have 64 hex digits';
  const digits = bare(id);
  if (/^[0-9a-f]+$/.test(digits)) return { problem: `${ids}; this has ${digits.length}. Copy the whole id again.` };
  const [odd] = /[^0-9a-f]/u.exec(digits) ?? [''];
  if (digits.length > 40) return { problem: `${ids}, 0 to 9 and a to f; this has “${odd}” in it. Copy the id again.` };
  return { problem: `This is neither a rune, an address, a transaction nor a block. ${ids}, and names of runes at most 28 letters.` };
}

export const isMisread = (read: FoundView | Misread): read is Misread => 'problem' in read;

/** Parses a number of a query string. Returns NaN for other text, so that the API refuses it. */
const numberOf = (text: string | null): number | undefined =>
  text === null || text === '' ? undefined : /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;

/** Parses a query string such as `?block=840000&operation=mint&limit=60&offset=60`, `?rune=840000:3` or `?runes`. */
export function viewOf(search: string): View {
  const query = new URLSearchParams(search);
  const parameter = (['block', 'tx', 'rune', 'address', 'output', 'runes'] as const).find((name) => query.has(name));
  if (parameter === undefined) return { kind: 'overview' };
  const text = query.get(parameter) ?? '';
  const window = { limit: numberOf(query.get('limit')), offset: numberOf(query.get('offset')) ?? 0 };
  if (parameter === 'runes')
    return { kind: parameter, id: text.trim(), list: SUBJECT_LISTS.runes.find((name) => name === query.get('list')), ...window };
  if (parameter !== 'block' && parameter !== 'tx') {
    const [read, problem] = readSubject(parameter, text);
    if (read === undefined) return { kind: 'problem', text, said: { problem } };
    const list = SUBJECT_LISTS[parameter].find((name) => name === query.get('list'));
    return { kind: parameter, id: read.id, list, ...window };
  }
  const read = readLookUp(text);
  if (isMisread(read)) return { kind: 'problem', text, said: read };
  // The name of the parameter decides the type, not the digits.
  const kind = parameter === 'block' ? 'block' : 'transaction';
  const isId = HEX.test(read.id) || (kind === 'block' && read.kind === 'block');
  if (!isId) {
    const label = read.kind === 'block' ? `Show block ${read.id}` : 'Show it';
    const ids = kind === 'block' ? 'Blocks have a height, or a hash of 64 hex digits.' : 'Transaction ids have 64 hex digits.';
    return { kind: 'problem', text, said: { problem: ids, instead: { label, view: read } } };
  }
  const operation = OPERATIONS.find((name) => kind === 'block' && name === query.get('operation'));
  return { kind, id: read.id, operation, ...window };
}

/** Parses the id of a page. Returns the problem for other text. */
function readSubject(kind: SubjectView['kind'], text: string): readonly [SubjectView | undefined, problem: string] {
  if (kind === 'rune') return [readRune(text), 'This is neither an id, a number nor a name of a rune.'];
  if (kind === 'output') return [readOutpoint(text), 'Outputs are the 64 hex digits of a transaction id, a colon, and an index.'];
  return [text.trim() === '' ? undefined : addressView(text.trim()), 'This is not an address.'];
}
