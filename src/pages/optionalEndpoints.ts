/**
 * Requests for the optional parts of the API: etchings, holders, balances, outputs, and activity by rune and by address. The manifest names
 * the parts of a mirror in `lists`. A request for a part that the mirror lacks gets 501, even with invalid parameters, because an empty
 * list or a 404 would wrongly mean that the chain has no such data.
 */
import type { Archive } from '../format/archiveReader.ts';
import type { BuiltSite, Dialect } from './mirrorOptions.ts';
import { parseRune, withoutZeros } from './parseIds.ts';
import { decode, decodeStrictly, parseQuery, type Window, windowIn } from './parseQuery.ts';

const LISTS = 'layout archive or --lists';
const ALL_BLOCKS = `${LISTS}, and all blocks since the first rune`;

/** Texts for messages about each part, by the part's name in the manifest: the name for people, and what a build needs to have the part. */
const PARTS = {
  etchings: ['etchings', 'a complete runes table in their input'],
  rune_activity: ['activity by rune', LISTS],
  address_activity: ['activity by address', LISTS],
  holders: ['holders of runes', ALL_BLOCKS],
  balances: ['balances of addresses', ALL_BLOCKS],
  outputs: ['unspent outputs', `${ALL_BLOCKS}, read from a node`],
} as const;
export type FurtherPart = keyof typeof PARTS;

/** Says what builds need to have a part. */
export const neededBy = (part: FurtherPart): string => PARTS[part][1];

/** A parsed path of one of the optional parts. The values are decoded, but not checked. */
export interface FurtherPath {
  readonly kind: 'further';
  readonly part: FurtherPart;
  readonly rune?: string;
  /** Undefined if the address has malformed percent-encoding. */
  readonly address?: string | undefined;
  readonly output?: string;
  /** True for a list, which has a window. */
  readonly isList: boolean;
}

/** A valid request for one of the parts that the mirror has. */
export interface FurtherRequest {
  readonly kind: 'further';
  readonly part: FurtherPart;
  /** An id (`840000:3`), a number without leading zeros, or a name in upper case without spacers. */
  readonly rune?: string | undefined;
  /** Must equal the address in the data, byte by byte. */
  readonly address?: string | undefined;
  /** `txid:vout` in lower case, without `0x` and leading zeros. */
  readonly output?: string | undefined;
  /** Undefined for a single object, which ignores `limit` and `offset`. */
  readonly window: Window | undefined;
}

/**
 * Reads the records of a transaction, as JSON in the order of the API: all records, or only the first ones if reading all would take more
 * pages than `READER_LIMITS.transactionPages`. `total` is the number of all records, and 0 if there are none. Rejects like
 * `AnswerFromLists`.
 */
export type ReadTransaction = (txId: string) => Promise<{ readonly total: number; readonly records: readonly string[] }>;

/**
 * Returns the body of an answer. Undefined if the requested object does not exist. Rejects with an ArchiveError or a MissingFileError for
 * missing or damaged files.
 */
export type AnswerFromLists = (
  request: FurtherRequest,
  dialect: Dialect,
  archive: Archive,
  readTransaction: ReadTransaction,
) => Promise<string | undefined>;

/** Parses the path segments below `/runes/v1`, still percent-encoded. Undefined if the path belongs to no optional part. */
export function parseFurtherPath(raw: readonly string[]): FurtherPath | undefined {
  const [collection, id, action, last] = raw.map(decode);
  const { length } = raw;
  const address = (at: number) => ({ address: decodeStrictly(raw[at] ?? '') });
  const path = (part: FurtherPart, isList: boolean, subject: Partial<FurtherPath> = {}): FurtherPath => ({
    kind: 'further',
    part,
    isList,
    ...subject,
  });
  if (collection === 'etchings') {
    if (length === 1) return path('etchings', true);
    const rune = { rune: id ?? '' };
    if (length === 2) return path('etchings', false, rune);
    const part = action === 'activity' ? 'rune_activity' : action === 'holders' ? 'holders' : undefined;
    if (part === undefined || length > 4) return undefined;
    if (last === undefined) return path(part, true, rune);
    return path(part, part === 'rune_activity', { ...rune, ...address(3) });
  }
  if (collection === 'addresses' && length === 3) {
    if (action === 'activity') return path('address_activity', true, address(1));
    return action === 'balances' || action === 'outputs' ? path(action, true, address(1)) : undefined;
  }
  return collection === 'outputs' && length === 2 ? path('outputs', false, { output: id ?? '' }) : undefined;
}

// The message of Hiro's server, which existing clients read. Mirrors also accept lower case and `.` as a spacer.
const RUNE_RULE =
  'params/etching must match pattern "^[0-9]+:[0-9]+$", params/etching must match pattern "^[0-9]+$", ' +
  'params/etching must match pattern "^[A-Z]+$", params/etching must match pattern "^[A-Za-z]+(•[A-Za-z]+)+$", ' +
  'params/etching must match a schema in anyOf';
const OUTPUT_RULE = 'params/output must match pattern "^[a-fA-F0-9]{64}:[0-9]+$"';

type Answer = FurtherRequest | { readonly kind: 'absent' | 'refusal'; readonly message: string };
const refusal = (message: string): Answer => ({ kind: 'refusal', message });

/** Checks a request. Reports the first fault in this order: part of the API, rune, address, output, offset, limit. */
export function parseFurther(path: FurtherPath, query: string, site: BuiltSite): Answer {
  const { part, isList } = path;
  if (site.lists[part] === undefined) return { kind: 'absent', message: absentPart(part, site) };
  const rune = path.rune === undefined ? undefined : parseRune(path.rune);
  if (path.rune !== undefined && rune === undefined) return refusal(RUNE_RULE);
  const address = 'address' in path ? parseAddress(path.address) : {};
  if (address.rule !== undefined) return refusal(`params/address ${address.rule}`);
  const output = path.output === undefined ? undefined : parseOutput(path.output);
  if (path.output !== undefined && output === undefined) return refusal(OUTPUT_RULE);
  const window = isList ? windowIn(parseQuery(query), site) : undefined;
  if (typeof window === 'string') return refusal(window);
  return { kind: 'further', part, rune, address: address.value, output, window };
}

/** Returns the message for a part of the API that the mirror lacks, or has in a format that this program cannot read. */
export function absentPart(part: FurtherPart, site: Pick<BuiltSite, 'lists'>): string {
  if (site.lists[part] !== undefined) return `this program is too old for ${part} of this mirror; update it`;
  const others = (Object.keys(PARTS) as FurtherPart[]).filter((name) => site.lists[name] !== undefined);
  const has = ['activity by transaction and block', ...others.map((name) => PARTS[name][0])].join(', ');
  const missing = PARTS[part][0];
  return `this mirror does not have ${missing}; it has: ${has}. Builds have ${missing} with ${neededBy(part)}`;
}

/** Maximum number of characters of an address, as on Hiro's server. A longer address gets an error. */
export const LONGEST_ADDRESS = 100;

/** Parses an address: any text of 1 to 100 characters. Bech32 in upper case becomes the same address in lower case. */
export function parseAddress(text: string | undefined): { readonly value?: string; readonly rule?: string } {
  if (text === undefined) return { rule: 'must be valid percent-encoding' };
  if (text === '') return { rule: 'must NOT have fewer than 1 characters' };
  if (text.length > LONGEST_ADDRESS) return { rule: `must NOT have more than ${LONGEST_ADDRESS} characters` };
  return { value: /^(?:BC|TB|BCRT)1[0-9A-Z]*$/.test(text) ? text.toLowerCase() : text };
}

/** Parses an outpoint, `txid:vout`. Returns it in lower case, without `0x` and leading zeros; undefined for other text. */
export function parseOutput(text: string): string | undefined {
  const [, id, index] = /^(?:0[xX])?([0-9a-fA-F]{64}):([0-9]+)$/.exec(text) ?? [];
  return id === undefined || index === undefined ? undefined : `${id.toLowerCase()}:${withoutZeros(index)}`;
}
