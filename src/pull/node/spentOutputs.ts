/**
 * Reads the answer of `rest/spenttxouts`, which Bitcoin Core has since version 30. The answer has value and script of every output that a
 * block spends, by transaction and input. Reads it in parts, and keeps only the wanted scripts.
 */
import { uint32At } from '../../runes/bytes.ts';
import type { Commitment } from '../../runes/indexBlock.ts';
import type { Block } from '../../runes/parseBlock.ts';
import { PassingError } from '../httpClient.ts';

/** Maximum length of the script of an output that can be spent, in bytes. */
export const LONGEST_SCRIPT = 10_000;

/** Bytes of an output's value, which precedes its script. */
const VALUE_BYTES = 8;

export class SpentOutputs {
  /** Expected counts: the number of transactions, then the number of inputs of each. */
  readonly #counts: readonly number[];
  /** Scripts of the wanted outputs, in their order, by position among all outputs that the block spends. */
  readonly #scripts: Map<number, Uint8Array | undefined>;
  #rest: Uint8Array = new Uint8Array();
  /** Number of counts that were read. */
  #read = 0;
  /** Number of outputs that were read. */
  #place = 0;
  #left = 0;

  constructor(block: Block, wanted: readonly Commitment[]) {
    // The first transaction of a block (coinbase) spends nothing.
    this.#counts = [block.transactions.length, ...block.transactions.map(({ inputs }, i) => (i === 0 ? 0 : inputs))];
    const [coinbase] = block.transactions;
    const firstOf = (transaction: number) => (block.transactions[transaction]?.firstInput ?? 0) - (coinbase?.inputs ?? 0);
    this.#scripts = new Map(wanted.map(({ transaction, input }) => [firstOf(transaction) + input, undefined]));
  }

  /** Reads the next bytes. Throws a PassingError if they do not match the block. */
  readonly feed = (chunk: Uint8Array): void => {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (let next: number | undefined = 0; next !== undefined; next = this.#next(bytes, at)) at = next;
    this.#rest = Uint8Array.from(bytes.subarray(at));
  };

  /** Returns the scripts in the order of the wanted outputs. Throws a PassingError if the bytes do not match the block. */
  end(): Uint8Array[] {
    const isWhole = this.#read === this.#counts.length && this.#left === 0 && this.#rest.length === 0;
    const scripts = [...this.#scripts.values()].flatMap((script) => (script === undefined ? [] : [script]));
    if (!isWhole || scripts.length < this.#scripts.size)
      throw new PassingError('are damaged: the answer lacks outputs that the block spends');
    return scripts;
  }

  /** Reads a count or an output at `at`. Returns the offset after it, or undefined if more bytes are needed. */
  #next(bytes: Uint8Array, at: number): number | undefined {
    if (this.#left === 0) {
      const count = compactSize(bytes, at);
      if (count === undefined) return undefined;
      const expected = this.#counts[this.#read];
      if (count.value !== expected) throw new PassingError(`are damaged: has ${count.value} transactions or inputs instead of ${expected}`);
      this.#left = this.#read === 0 ? 0 : count.value;
      this.#read += 1;
      return count.end;
    }
    const length = compactSize(bytes, at + VALUE_BYTES);
    if (length === undefined) return undefined;
    if (length.value > LONGEST_SCRIPT)
      throw new PassingError(`are damaged: a script has ${length.value} bytes, more than ${LONGEST_SCRIPT}`);
    const end = length.end + length.value;
    if (end > bytes.length) return undefined;
    if (this.#scripts.has(this.#place)) this.#scripts.set(this.#place, Uint8Array.from(bytes.subarray(length.end, end)));
    this.#place += 1;
    this.#left -= 1;
    return end;
  }
}

/** Reads a CompactSize integer of 1, 3 or 5 bytes. Returns undefined if bytes are missing. */
function compactSize(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  const first = bytes[at];
  if (first === undefined) return undefined;
  if (first < 0xfd) return { value: first, end: at + 1 };
  const end = at + (first === 0xfd ? 3 : 5);
  if (end > bytes.length) return undefined;
  return { value: first === 0xfd ? uint32At(bytes, at + 1) & 0xffff : uint32At(bytes, at + 1), end };
}
