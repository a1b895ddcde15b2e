/**
 * Unspent outputs with runes: three kinds of documents (documents.ts).
 *
 * **By outpoint**, `txid:vout`: the first value is the place of the output, a list in JSON: block height, block hash, tx
 * index, timestamp, and address or null. Each other value is a rune: id, number, name, spaced name, divisibility, and
 * the balance in smallest units, as text. An output that is spent in a level above its own has the value `"spent"` there.
 *
 * **By address**: the list of an address in a level has the outputs that the level's blocks made and that are unspent
 * after its last block, newest first. Each value is a list with an outpoint, its place without the address, and a list
 * for each rune. A list with an outpoint alone removes an output of a lower level.
 *
 * A list with more outputs than `page` has pages: documents of their own (`pageKey`). Then a level above has its removed
 * outpoints by page, in documents with a `removalKey`. So has a level that removes more than `page` outputs. Such a
 * document begins with a head: the number of made outputs and, for each lower level, the numbers of outputs that are
 * removed from its pages. So a reader knows from all heads in which pages a window is.
 *
 * **Starts** are for builds only: for each list with pages, where its pages begin, as starts of sort keys.
 *
 * Outputs that are created and spent in the blocks of one level are in none of its documents.
 */

/** The value of an output that is spent. */
export const SPENT = '"spent"';

/** A rune in an output, with its balance in smallest units. */
type OutputRune = readonly [id: string, number: number, name: string, spacedName: string, divisibility: number, units: string];

/** Where an output was made. Hashes have 64 hex digits and no prefix. */
type OutputPlace = readonly [height: number, blockHash: string, txIndex: number, timestamp: number];

export interface UnspentOutput {
  /** `txid:vout`. */
  readonly output: string;
  readonly place: OutputPlace;
  readonly address: string | undefined;
  readonly runes: readonly OutputRune[];
}

/** Parses the values of an outpoint's document. Throws for other text. */
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

/** Returns the outpoint in a value of an address's list, or of a removed output. An outpoint has no quotes. */
export const outpointOf = (value: string): string => value.slice(2, value.indexOf('"', 2));

/** Sort keys have this number minus the height, with 8 digits. */
export const ABOVE_HEIGHTS = 99_999_999;

/** Returns the sort key of a value of an address's list. Values ascend by it: by height, the highest first, txid and vout. */
export function sortKeyOf(value: string): string {
  const output = outpointOf(value);
  const at = output.indexOf(':');
  const height = ABOVE_HEIGHTS - Number.parseInt(value.slice(output.length + 4), 10);
  return `${String(height).padStart(8, '0')}${output.slice(0, at)}${output.slice(at + 1).padStart(10, '0')}`;
}

/** Returns the outpoint of a sort key. */
export const outpointOfSortKey = (sort: string): string => `${sort.slice(8, -10)}:${Number(sort.slice(-10))}`;

/** Returns the key of the outpoints that a level removes from a page of the level that begins at height `first`. */
export const removalKey = (key: string, first: number, page: number): string =>
  `${key} ~${String(first).padStart(8, '0')}.${String(page).padStart(8, '0')}`;

/** What is removed from the pages of the level that begins at height `first`: number of the page, and count, in turn. */
export type Removals = readonly [first: number, ...pages: readonly number[]];

export interface AddressDocument {
  /** Number of outputs that the level's blocks made. */
  readonly made: number;
  /** Counts of removed outpoints that have documents of their own. */
  readonly removals: readonly Removals[];
  /** The made outputs; undefined if they have pages. */
  readonly outputs: readonly string[] | undefined;
  /** Removed outpoints that are in this document. */
  readonly removed: readonly string[];
}

/** Makes the first value of a document with pages or removal documents. */
export const renderAddressHead = (made: number, removals: readonly Removals[]): string => JSON.stringify([made, removals]);

/** Parses the document of an address. Throws for other text. */
export function parseAddress(values: readonly string[], page: number): AddressDocument {
  const [first = ''] = values;
  // Values but the head begin with an outpoint.
  const hasHead = !first.startsWith('["');
  const [outputs, removed]: [string[], string[]] = [[], []];
  for (const value of hasHead ? values.slice(1) : values) {
    // A removed outpoint is alone.
    if (value.endsWith('"]') && !value.includes(',')) removed.push(outpointOf(value));
    else outputs.push(value);
  }
  if (!hasHead) return { made: outputs.length, removals: [], outputs, removed };
  const [made, removals] = JSON.parse(first) as [number, Removals[]];
  return { made, removals, outputs: made > page ? undefined : outputs, removed };
}
