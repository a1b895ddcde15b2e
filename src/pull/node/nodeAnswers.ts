/** Schemas and parsers of Bitcoin Core's answers, and the maximum sizes of the answers. */
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import { copyOf, hashText, uint32At } from '../../runes/bytes.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { HIGHEST } from '../blockSource.ts';
import { PassingError } from '../httpConnections.ts';
import { JsonPicker } from './jsonPicker.ts';
import { parsed, RpcError } from './nodeCalls.ts';
import { compactSize, LONGEST_SCRIPT, VALUE_BYTES } from './spentOutputs.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

/** Maximum size of an answer of the RPC interface without the result in it, in bytes. */
export const ENVELOPE_BYTES = 1000;

const height = z.int().min(0).max(HIGHEST);

export const chainInfo = z.object({
  chain: z.string(),
  blocks: height,
  headers: z.int().max(HIGHEST),
  bestblockhash: hex64,
  initialblockdownload: z.boolean(),
  pruned: z.boolean(),
  pruneheight: height.optional(),
});
export const hashAnswer = z.object({ blockhash: hex64 });
export const networkInfo = z.object({ version: z.int() });
/** Output script in hex. A script of more than 10,000 bytes cannot be spent. */
const script = z.string().regex(/^(?:[0-9a-f]{2}){0,10000}$/);
const previousOutput = z.object({ prevout: z.object({ height, scriptPubKey: z.object({ hex: script }) }) });

export function bytesOf(hex: string): Uint8Array {
  const bytes = Buffer.from(hex, 'hex');
  // Buffer.from() stops at the first character that is not hex, so it returns fewer bytes for such a text.
  if (2 * bytes.length !== hex.length) throw new PassingError('is damaged: it is not hex');
  return bytes;
}

/** Input whose spent output is wanted: transaction id, index of the input, and path of the transaction in the JSON. */
export interface WantedInput {
  readonly txid: string;
  readonly input: number;
  readonly path: readonly (string | number)[];
}

/** Picks the outputs that the wanted inputs spend. Reads the JSON of the inputs' transactions, in parts. */
export class PreviousOutputs extends JsonPicker {
  readonly #wanted: readonly WantedInput[];

  /** `envelope` is the path of the result in the JSON. */
  constructor(wanted: readonly WantedInput[], envelope: readonly string[]) {
    const paths = wanted.flatMap(({ path, input }) => {
      const at = [...envelope, ...path];
      const previous = [...at, 'vin', input, 'prevout'];
      return [
        [...at, 'txid'],
        [...at, 'vin', input],
        [...previous, 'height'],
        [...previous, 'scriptPubKey', 'hex'],
      ];
    });
    super([['error', 'code'], ['error', 'message'], ...paths]);
    this.#wanted = wanted;
  }

  /**
   * Returns the outputs in the order of the wanted inputs. Returns undefined if the JSON of the node's version lacks
   * them. Throws an RpcError if the JSON is an error, and a PassingError if the JSON is damaged.
   */
  outputs(): PreviousOutput[] | undefined {
    this.end();
    const [code, message = '', ...values] = this.values;
    if (code !== undefined) throw new RpcError(Number(code), message);
    const found: PreviousOutput[] = [];
    for (const [i, { txid, input }] of this.#wanted.entries()) {
      const [id, place, height, hex] = values.slice(4 * i);
      if (id !== txid || place === undefined) throw new PassingError(`lack input ${input} of transaction ${txid}`);
      if (height === undefined && hex === undefined) return undefined;
      const { prevout } = parsed({ prevout: { height: Number(height), scriptPubKey: { hex } } }, previousOutput);
      found.push({ script: bytesOf(prevout.scriptPubKey.hex), height: prevout.height });
    }
    return found;
  }
}

/** An unspent output: height of its block, and script. */
export type Coin = PreviousOutput;

/** Unspent outputs as of the block with the hash `tip`. Undefined for outpoints that are spent or unknown. */
export interface Coins {
  readonly tip: string;
  readonly coins: readonly (Coin | undefined)[];
}

/** Maximum number of outpoints in a request of `rest/getutxos`. Bitcoin Core refuses more. */
export const COINS_AT_ONCE = 15;

/** Largest answer of `rest/getutxos`, in bytes. */
export const LARGEST_COINS = 100 + COINS_AT_ONCE * (30 + LONGEST_SCRIPT);

/** Offsets in an answer: of the tip's hash, and of the bits that tell which outpoints were found. */
const [TIP_AT, BITS_AT] = [4, 37];

/**
 * Parses the binary answer of `rest/getutxos` for `count` outpoints. The answer has height and hash of the tip, then a
 * bit for each outpoint. Then, for each outpoint that was found, it has 4 unused bytes, height, value and script.
 * Throws a PassingError for other bytes.
 */
export function readCoins(bytes: Uint8Array, count: number): Coins {
  let at = BITS_AT + Math.ceil(count / 8);
  const found = Array.from({ length: count }, (_, i) => ((bytes[BITS_AT + (i >> 3)] ?? 0) >> (i & 7)) & 1);
  const size = (from: number, expected?: number) => {
    const read = compactSize(bytes, from);
    if (read === undefined || read.value > LONGEST_SCRIPT || (expected ?? read.value) !== read.value)
      throw new PassingError(`has an unexpected answer: the number at byte ${from} is missing or wrong`);
    return read;
  };
  size(BITS_AT - 1, at - BITS_AT);
  at = size(at, found.filter(Boolean).length).end;
  const coins = found.map((bit) => {
    if (bit === 0) return undefined;
    const script = size(at + 8 + VALUE_BYTES);
    const coin = { height: uint32At(bytes, at + 4), script: copyOf(bytes, script.end, script.end + script.value) };
    at = script.end + script.value;
    return coin;
  });
  if (at !== bytes.length) throw new PassingError(`has an unexpected answer: it has ${bytes.length} bytes instead of ${at}`);
  return { tip: hashText(bytes, TIP_AT), coins };
}
