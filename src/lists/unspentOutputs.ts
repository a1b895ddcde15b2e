/**
 * Unspent outputs with runes: three kinds of documents (format/documents.ts).
 *
 * **By outpoint**, `txid:vout`. The first value is a JSON list with the location of the output: block height, block hash, tx index,
 * timestamp, and address or null. Each other value is a JSON list with a rune: id, number, name, spaced name, divisibility, and balance in
 * smallest units as text. If a block of a level spends an output of a lower level, the output's document in the higher level has only the
 * value `"spent"`.
 *
 * **By address**. A level (format/levels.ts) has the outputs that its blocks made and that are unspent after its last block, newest first.
 * Each value is a JSON list: outpoint, location without address, and a list for each rune. A value with only an outpoint removes this
 * output from a lower level.
 *
 * A list of more than `page` outputs has pages, which are documents of their own (`pageKey`). A level may remove outputs from pages of a
 * lower level, or remove more than `page` outputs. Then it has a document for each page that loses outputs, with the removed outpoints
 * (`removalKey`). In both cases, the address's document begins with a head: the number of outputs that the level made, and how many outputs
 * it removes from each page of lower levels. From the heads, a reader computes which pages a window needs.
 *
 * **Starts** are for builds only. For each page of a list, they have the sort key of the page's first output (unspentOutputs.sql.ts). From
 * these keys, a build finds the page of a spent output.
 *
 * An output that the blocks of one level both make and spend is in no document of the level. The records of the transaction that made the
 * output tell which runes it held.
 *
 * Every answer names the highest block of the mirror, because a wallet may ask for a newer output.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { damaged, type FoundDocument, findDocuments, findInLevels, keyOfAddress, orDamaged, pageKey } from '../format/documents.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import { overlapping } from '../format/overlap.ts';
import { groupBy } from '../groupBy.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import type { FurtherRequest, ReadTransaction } from '../pages/optionalEndpoints.ts';
import { spellHex } from '../pages/parseIds.ts';
import type { Window } from '../pages/parseQuery.ts';
import type { RuneNames } from '../runes/name.ts';

/** The only value in the document of a spent output. */
export const SPENT = '"spent"';

/** A rune in an output, with its balance in smallest units. */
type OutputRune = readonly [id: string, number: number, name: string, spacedName: string, divisibility: number, units: string];

/** Location in the chain where an output was made. Hashes have 64 hex digits and no prefix. */
type OutputPlace = readonly [height: number, blockHash: string, txIndex: number, timestamp: number];

interface UnspentOutput {
  /** `txid:vout`. */
  readonly output: string;
  readonly place: OutputPlace;
  readonly address: string | undefined;
  readonly runes: readonly OutputRune[];
}

/** Parses the values of an outpoint's document. Returns undefined for a spent output. Throws for invalid text. */
function parseOutput(output: string, [first = '', ...runes]: readonly string[]): UnspentOutput | undefined {
  if (first === SPENT) return undefined;
  const [height, hash, txIndex, timestamp, address] = JSON.parse(first) as readonly [...OutputPlace, address: string | null];
  return {
    output,
    place: [height, hash, txIndex, timestamp],
    address: address ?? undefined,
    runes: runes.map((rune) => JSON.parse(rune) as OutputRune),
  };
}

/** Parses a value of an address's list. Throws for invalid text. */
function parseAddressOutput(value: string, address: string): UnspentOutput {
  const [output, height, hash, txIndex, timestamp, ...runes] = JSON.parse(value) as [string, ...OutputPlace, ...OutputRune[]];
  return { output, place: [height, hash, txIndex, timestamp], address, runes };
}

const outpointOf = (value: string): string => value.slice(2, value.indexOf('"', 2));

/** Sort keys begin with this number minus the height, in 8 digits, so that keys of higher blocks sort first. */
export const ABOVE_HEIGHTS = 99_999_999;

/** Returns the key of the document with the outpoints that a level removes from a page of the lower level that begins at height `first`. */
export const removalKey = (key: string, first: number, page: number): string =>
  `${key} ~${String(first).padStart(8, '0')}.${String(page).padStart(8, '0')}`;

/** Numbers of outputs that a level removes from a lower level. `pages` alternates: index of a page, number of outputs removed from it. */
type Removals = readonly [first: number, ...pages: readonly number[]];

interface AddressDocument {
  /** Number of outputs that the level's blocks made. */
  readonly made: number;
  /** Number of outpoints in each document of removed outpoints (`removalKey`). */
  readonly removals: readonly Removals[];
  /** Values of the made outputs; undefined if they are in pages. */
  readonly outputs: readonly string[] | undefined;
  /** Removed outpoints that are in this document. */
  readonly removed: readonly string[];
}

/** Parses the document of an address. Throws for invalid text. */
function parseAddress(values: readonly string[], page: number): AddressDocument {
  const [first = ''] = values;
  // All values except a head begin with an outpoint.
  const hasHead = !first.startsWith('["');
  const [outputs, removed]: [string[], string[]] = [[], []];
  for (const value of hasHead ? values.slice(1) : values) {
    // A value with only an outpoint removes an output.
    if (value.endsWith('"]') && !value.includes(',')) removed.push(outpointOf(value));
    else outputs.push(value);
  }
  if (!hasHead) return { made: outputs.length, removals: [], outputs, removed };
  const [made, removals] = JSON.parse(first) as [number, Removals[]];
  return { made, removals, outputs: made > page ? undefined : outputs, removed };
}

/** Returns the response body. Rejects with an ArchiveError for damaged files, and with errors of `readTransaction`. */
export async function answerOutputs(
  { output, address, window }: FurtherRequest,
  dialect: Dialect,
  archive: Archive,
  readTransaction: ReadTransaction,
): Promise<string> {
  const { outputs: tables, tip = 0, page = 1 } = archive.root.lists ?? {};
  if (tables === undefined) throw new ArchiveError('the root of the archive has no outputs');
  const asOf = `"block_height":${tip},"block_hash":"${spellHex(tables.tipHash, dialect)}"`;
  if (output !== undefined) {
    const [state = NEVER_READ] = await findOutputs([output], tables, archive, readTransaction);
    if (state.kind === 'runes') return `{${asOf},${render(state.found, dialect)},"spent":false}`;
    if (state.kind === 'spent')
      return `{${asOf},${render({ ...state.found, runes: [] }, dialect)},"spent":true,"held":${renderRunes(state.found.runes)}}`;
    const held = state.kind === 'none' && state.neverHeld ? '' : ',"held":null';
    return `{${asOf},"output":"${spellOutput(output, dialect)}","runes":[],"spent":null${held}}`;
  }
  const { limit = 0, offset = 0 } = window ?? {};
  const { total, outputs } = await outputsOf(address ?? '', { limit, offset }, tables, page, archive);
  const results = outputs.map((one) => `{${render(one, dialect)}}`);
  return `{${asOf},"limit":${limit},"offset":${offset},"total":${total},"results":[${results.join(',')}]}`;
}

/** An output with its runes, as it is now (`runes`), or as it was before it was spent (`spent`). */
type KnownOutput = { readonly kind: 'runes' | 'spent'; readonly found: UnspentOutput };

/**
 * State of an output after the highest block. `none`: it holds no runes. `neverHeld` is false if it may have held some before, because its
 * transaction has too many records to read.
 */
export type OutputState = KnownOutput | { readonly kind: 'none'; readonly neverHeld: boolean };

const NEVER_READ: OutputState = { kind: 'none', neverHeld: false };

/** Returns the states of outputs, in the order of `outputs`. Rejects with errors of `findDocuments` and `readTransaction`. */
export async function findOutputs(
  outputs: readonly string[],
  tables: OutputTables,
  archive: Archive,
  readTransaction: ReadTransaction,
): Promise<OutputState[]> {
  const levels = await Promise.all(tables.outputs.map((level) => findDocuments(archive, level, outputs)));
  const known = outputs.map((output, i) => orDamaged(() => stateIn(levels, i, output)));
  // Reads each transaction only once, even if several outputs of it are wanted.
  const byTransaction = groupBy(
    outputs.filter((_, i) => known[i] === undefined),
    (output) => partsOf(output)[0],
  );
  const found = new Map<string, OutputState>();
  const read = async ([txId, wanted]: readonly [string, readonly string[]]) => {
    const { total, records } = await readTransaction(txId);
    const hasAll = total === records.length;
    const receives = hasAll ? orDamaged(() => records.map(parseRecord).filter(isReceive)) : [];
    for (const output of wanted) found.set(output, stateBefore(output, receives) ?? { kind: 'none', neverHeld: hasAll });
  };
  await Promise.all([...byTransaction].map(read));
  return outputs.map((output, i) => known[i] ?? found.get(output) ?? NEVER_READ);
}

/** Returns the state of output `i` from its documents in all levels; undefined if they do not have its runes. */
function stateIn(levels: readonly (readonly (readonly string[] | undefined)[])[], i: number, output: string): KnownOutput | undefined {
  const values = levels.flatMap((documents) => (documents[i] === undefined ? [] : [documents[i]]));
  const versions = values.map((one) => parseOutput(output, one));
  const found = versions.filter((version) => version !== undefined).at(-1);
  return found && { kind: versions.at(-1) === undefined ? 'spent' : 'runes', found };
}

/** A record of a transaction, as the API has it. */
interface ParsedRecord {
  readonly rune: RuneNames;
  readonly operation: string;
  readonly address?: string;
  readonly amount?: string;
  readonly location: {
    readonly block_hash: string;
    readonly block_height: number;
    readonly tx_index: number;
    readonly timestamp: number;
    readonly vout?: number;
  };
}

const parseRecord = (record: string): ParsedRecord => JSON.parse(record) as ParsedRecord;
const isReceive = ({ operation }: ParsedRecord): boolean => operation === 'receive';

/** Returns the state of an output without a document, from the `receive` records of its transaction. Undefined if it held no runes. */
function stateBefore(output: string, receives: readonly ParsedRecord[]): KnownOutput | undefined {
  const own = receives.filter(({ location }) => location.vout === partsOf(output)[1]);
  const [first] = own;
  if (first === undefined) return undefined;
  const runes = new Map<number, OutputRune>();
  for (const { rune, amount = '' } of own) {
    const [digits, decimals = ''] = [amount.replace('.', ''), amount.split('.')[1]];
    const units = BigInt(digits) + BigInt(runes.get(rune.number)?.[5] ?? 0);
    runes.set(rune.number, [rune.id, rune.number, rune.name, rune.spaced_name, decimals.length, String(units)]);
  }
  const { block_height, block_hash, tx_index, timestamp } = first.location;
  const place = [block_height, block_hash.replace(/^0x/, ''), tx_index, timestamp] as const;
  const sorted = [...runes.values()].sort(([, a], [, b]) => a - b);
  return { kind: 'spent', found: { output, place, address: first.address, runes: sorted } };
}

interface LevelList extends AddressDocument {
  readonly level: DocumentLevel;
  /** Number of unspent outputs in each page. */
  readonly counts: number[];
}

/** Reads a window of an address's unspent outputs: the lists of all levels, the newest first, without those that newer levels remove. */
async function outputsOf(
  address: string,
  { limit, offset }: Window,
  { addresses }: OutputTables,
  page: number,
  archive: Archive,
): Promise<{ total: number; outputs: UnspentOutput[] }> {
  const key = keyOfAddress(address);
  if (key === undefined) return { total: 0, outputs: [] };
  const lists = (await findInLevels(archive, addresses, key)).map((found) => orDamaged(() => listOf(found, page))).reverse();
  const removed = new Set(lists.flatMap((list) => list.removed));
  for (const list of lists) {
    if (list.outputs !== undefined) list.counts[0] = list.outputs.filter((value) => !removed.has(outpointOf(value))).length;
    for (const newer of lists) subtract(newer.removals, list);
  }
  const pages = lists.flatMap((list) => list.counts.map((count, number) => ({ list, page: number, count })));
  if (!pages.every(({ count }) => count >= 0)) throw damaged();
  const total = pages.reduce((sum, { count }) => sum + count, 0);
  const wanted = overlapping(pages, ({ count }) => count, offset, offset + limit);
  const items = wanted.map(({ item }) => item);
  const outputs = await readPages(key, items, lists, removed, archive);
  const from = offset - (wanted[0]?.before ?? 0);
  const values = outputs.flat().slice(from, from + limit);
  return { total, outputs: values.map((value) => orDamaged(() => parseAddressOutput(value, address))) };
}

function listOf({ level, values }: FoundDocument, page: number): LevelList {
  const document = parseAddress(values, page);
  const counts = Array.from({ length: Math.ceil(document.made / page) }, (_, i) => Math.min(document.made - i * page, page));
  return { ...document, level, counts };
}

/** Lowers the counts of a list's pages by the numbers of outputs that a newer level removes from the pages. */
function subtract(removals: readonly Removals[], { level, counts }: LevelList): void {
  for (const [first, ...pages] of removals) {
    if (first !== level.first) continue;
    for (let i = 0; i < pages.length; i += 2) {
      const number = pages[i] ?? 0;
      counts[number] = (counts[number] ?? Number.NaN) - (pages[i + 1] ?? 0);
    }
  }
}

/** Reads pages and omits removed outputs. Requests all documents of all levels concurrently. */
async function readPages(
  key: string,
  wanted: readonly { readonly list: LevelList; readonly page: number; readonly count: number }[],
  lists: readonly LevelList[],
  removed: ReadonlySet<string>,
  archive: Archive,
): Promise<string[][]> {
  const keys = new Map(lists.map(({ level }) => [level, new Set<string>()]));
  for (const { list, page } of wanted) {
    if (list.outputs === undefined) keys.get(list.level)?.add(pageKey(key, page));
    for (const newer of lists) if (removes(newer, list, page)) keys.get(newer.level)?.add(removalKey(key, list.level.first, page));
  }
  const found = new Map<string, readonly string[]>();
  const read = [...keys].map(async ([level, sought]) => {
    const documents = await findDocuments(archive, level, [...sought]);
    for (const [i, one] of [...sought].entries()) found.set(`${level.first} ${one}`, documents[i] ?? []);
  });
  await Promise.all(read);
  return wanted.map(({ list, page, count }) => {
    const values = list.outputs ?? found.get(`${list.level.first} ${pageKey(key, page)}`) ?? [];
    const gone = new Set(lists.flatMap(({ level }) => found.get(`${level.first} ${removalKey(key, list.level.first, page)}`) ?? []));
    const left = values.filter((value) => !gone.has(outpointOf(value)) && !removed.has(outpointOf(value)));
    if (left.length !== count) throw damaged();
    return left;
  });
}

const removes = ({ removals }: LevelList, { level }: LevelList, page: number): boolean =>
  removals.some(([first, ...pages]) => first === level.first && pages.some((number, i) => i % 2 === 0 && number === page));

function partsOf(output: string): [txId: string, vout: number] {
  const at = output.indexOf(':');
  return [output.slice(0, at), Number(output.slice(at + 1))];
}

/** Renders an output as JSON, without the outer braces. */
function render({ output, place, address, runes }: UnspentOutput, dialect: Dialect): string {
  const [height, hash, txIndex, timestamp] = place;
  const hex = (text: string) => `"${spellHex(text, dialect)}"`;
  return (
    `"output":"${spellOutput(output, dialect)}",${address === undefined ? '' : `"address":${JSON.stringify(address)},`}` +
    `"location":{"block_hash":${hex(hash)},"block_height":${height},"tx_id":${hex(partsOf(output)[0])},"tx_index":${txIndex},"timestamp":${timestamp}},` +
    `"runes":${renderRunes(runes)}`
  );
}

const renderRunes = (runes: readonly OutputRune[]): string => JSON.stringify(heldRunes(runes));

/** A rune in an output, in the form of the API. */
export interface HeldRune {
  readonly rune: RuneNames;
  /** Decimal string in units of the rune. */
  readonly balance: string;
}

/** Converts runes of an output to the form of the API. */
export const heldRunes = (runes: readonly OutputRune[]): HeldRune[] =>
  runes.map(([id, number, name, spacedName, divisibility, units]) => ({
    rune: { id, number, name, spaced_name: spacedName },
    balance: shiftDecimals(BigInt(units), divisibility),
  }));

const spellOutput = (output: string, dialect: Dialect): string => spellHex(output, dialect);
