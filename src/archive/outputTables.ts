/**
 * Unspent outputs with runes: three kinds of documents (documents.ts).
 *
 * **By outpoint**, `txid:vout`. The first value is a JSON list with the location of the output: block height, block
 * hash, tx index, timestamp, and address or null. Each other value is a JSON list with a rune: id, number, name, spaced
 * name, divisibility, and balance in smallest units as text. If a level spends an output of a lower level, its document
 * has only the value `"spent"`.
 *
 * **By address**. A level has the outputs that its blocks made and that are unspent after its last block, newest first.
 * Each value is a JSON list: outpoint, location without address, and a list for each rune. A value with only an
 * outpoint removes this output from a lower level.
 *
 * A list of more than `page` outputs has pages, which are documents of their own (`pageKey`). If a level removes
 * outputs from pages of a lower level, or removes more than `page` outputs, the removed outpoints are in documents by
 * page (`removalKey`). Then the address's document begins with a head: the number of outputs that the level made, and
 * how many outputs it removes from each page of lower levels. So the heads tell a reader which pages a window needs.
 *
 * **Starts** are for builds only. For each list with pages, they have a lower bound of the sort keys of each page.
 *
 * An output that is made and spent in the blocks of one level is in no document of the level.
 */

/** The only value of a spent output. */
export const SPENT = '"spent"';

/** A rune in an output, with its balance in smallest units. */
type OutputRune = readonly [id: string, number: number, name: string, spacedName: string, divisibility: number, units: string];

/** Location in the chain where an output was made. Hashes have 64 hex digits and no prefix. */
type OutputPlace = readonly [height: number, blockHash: string, txIndex: number, timestamp: number];

export interface UnspentOutput {
  /** `txid:vout`. */
  readonly output: string;
  readonly place: OutputPlace;
  readonly address: string | undefined;
  readonly runes: readonly OutputRune[];
}

/** Parses the values of an outpoint's document. Undefined if the output is spent. Throws for other text. */
export function parseOutput(output: string, [first = '', ...runes]: readonly string[]): UnspentOutput | undefined {
  if (first === SPENT) return undefined;
  const [height, hash, txIndex, timestamp, address] = JSON.parse(first) as readonly [...OutputPlace, address: string | null];
  return {
    output,
    place: [height, hash, txIndex, timestamp],
    address: address ?? undefined,
    runes: runes.map((rune) => JSON.parse(rune) as OutputRune),
  };
}

/** Parses a value of an address's list. Throws for other text. */
export function parseAddressOutput(value: string, address: string): UnspentOutput {
  const [output, height, hash, txIndex, timestamp, ...runes] = JSON.parse(value) as [string, ...OutputPlace, ...OutputRune[]];
  return { output, place: [height, hash, txIndex, timestamp], address, runes };
}

/** Returns the outpoint at the beginning of a value of an address's list. */
export const outpointOf = (value: string): string => value.slice(2, value.indexOf('"', 2));

/** Sort keys begin with this number minus the height, in 8 digits, so that higher blocks come first. */
export const ABOVE_HEIGHTS = 99_999_999;

/** Returns the key by which values of an address's list ascend: height (the highest first), then txid, then vout. */
export function sortKeyOf(value: string): string {
  const output = outpointOf(value);
  const at = output.indexOf(':');
  const height = ABOVE_HEIGHTS - Number.parseInt(value.slice(output.length + 4), 10);
  return `${String(height).padStart(8, '0')}${output.slice(0, at)}${output.slice(at + 1).padStart(10, '0')}`;
}

/** Returns the outpoint of a sort key. */
export const outpointOfSortKey = (sort: string): string => `${sort.slice(8, -10)}:${Number(sort.slice(-10))}`;

/** Returns the key of the outpoints removed from a page of an address, in the lower level that begins at `first`. */
export const removalKey = (key: string, first: number, page: number): string =>
  `${key} ~${String(first).padStart(8, '0')}.${String(page).padStart(8, '0')}`;

/** Outputs removed from the level that begins at height `first`: index of a page, count, index of the next page, ... */
export type Removals = readonly [first: number, ...pages: readonly number[]];

export interface AddressDocument {
  /** Number of outputs that the level's blocks made. */
  readonly made: number;
  /** Counts of the removed outpoints that are in documents by page (`removalKey`). */
  readonly removals: readonly Removals[];
  /** Values of the made outputs; undefined if they are in pages. */
  readonly outputs: readonly string[] | undefined;
  /** Removed outpoints in this document. */
  readonly removed: readonly string[];
}

/** Renders the head of an address's document. */
export const renderAddressHead = (made: number, removals: readonly Removals[]): string => JSON.stringify([made, removals]);

/** Parses the document of an address. Throws for other text. */
export function parseAddress(values: readonly string[], page: number): AddressDocument {
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
