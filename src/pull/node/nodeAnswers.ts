/** Schemas and parsers of Bitcoin Core's answers, and the maximum sizes of the answers. */
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import { copyOf, hashText, uint32At } from '../../runes/bytes.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { PassingError } from '../httpClient.ts';
import { HIGHEST } from '../pullOptions.ts';
import { compactSize, LONGEST_SCRIPT, VALUE_BYTES } from './spentOutputs.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

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
