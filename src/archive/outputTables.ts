/**
 * Unspent outputs with runes: two kinds of documents (documents.ts).
 *
 * **By outpoint**, `txid:vout`: the first value is the place of the output, a list in JSON: block height, block hash, tx
 * index, timestamp, and address or null. Each other value is a rune: id, number, name, spaced name, divisibility, and
 * the balance in smallest units, as text. An output that is spent in a level above its own has the value `"spent"` there.
 *
 * **By address**: each value is a list with an outpoint, its place without the address, and a list for each rune. A list
 * with an outpoint alone says that it is spent.
 *
 * Outputs that are created and spent in the blocks of one level are in none of its documents.
 */
import { areDocuments, type DocumentLevel } from './documents.ts';

export interface OutputTables {
  /** Hash of the highest block: 64 hex digits, no prefix. */
  readonly tipHash: string;
  /** Documents by outpoint, ascending by height. */
  readonly outputs: readonly DocumentLevel[];
  /** Documents by address, ascending by height. */
  readonly addresses: readonly DocumentLevel[];
}

/** True for the tables of a root. */
export function areOutputs(value: unknown): value is OutputTables {
  const { tipHash, outputs, addresses } = Object(value) as Readonly<Record<string, unknown>>;
  return /^[0-9a-f]{64}$/.test(String(tipHash)) && areDocuments(outputs) && areDocuments(addresses);
}

/** The value of an output that is spent. */
export const SPENT = '"spent"';

/** A rune in an output, with its balance in smallest units. */
type OutputRune = readonly [id: string, number: number, name: string, spacedName: string, divisibility: number, units: string];

/** Where an output was made. Hashes have 64 hex digits and no prefix. */
type OutputPlace = readonly [height: number, blockHash: string, txIndex: number, timestamp: number];

/** An unspent output. */
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

/** Parses a value of an address's document: an output, or the outpoint of a spent one. Throws for other text. */
export function parseAddressOutput(value: string, address: string): UnspentOutput | string {
  const [output, ...rest] = JSON.parse(value) as readonly [string, ...unknown[]];
  if (rest.length === 0) return output;
  const [height, hash, txIndex, timestamp, ...runes] = rest as [...OutputPlace, ...OutputRune[]];
  return { output, place: [height, hash, txIndex, timestamp], address, runes };
}
