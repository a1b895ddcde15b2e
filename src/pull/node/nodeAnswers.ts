/** Schemas of Bitcoin Core's answers, and the maximum sizes of the answers. */
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { HIGHEST } from '../pullOptions.ts';
import { LONGEST_SCRIPT } from './spentOutputs.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

const height = z.int().min(0).max(HIGHEST);

export const chainInfo = z.object({
  chain: z.string(),
  blocks: height,
  headers: z.int().max(HIGHEST),
  bestblockhash: hex64,
  initialblockdownload: z.boolean(),
});
export const hashAnswer = z.object({ blockhash: hex64 });

/** Unspent outputs as of the block with the hash `tip`. Undefined for outpoints that are spent or unknown. */
export interface Coins {
  readonly tip: string;
  readonly coins: readonly (PreviousOutput | undefined)[];
}

/** Maximum number of outpoints in a request of `rest/getutxos`. Bitcoin Core refuses more. */
export const COINS_AT_ONCE = 15;

/**
 * Largest answer of `rest/getutxos`, in bytes. It has each script in several forms. The longest name of an opcode, which is
 * one byte of a script, has 22 characters.
 */
export const LARGEST_COINS = COINS_AT_ONCE * (1000 + 32 * LONGEST_SCRIPT);

const script = z
  .hex()
  .max(2 * LONGEST_SCRIPT)
  .transform((digits): Uint8Array => Uint8Array.from(Buffer.from(digits, 'hex')));

/** Answer of `rest/getutxos`: a 1 in the bitmap for each outpoint that was found, and the outputs of these. */
export const coinsAnswer = z
  .object({
    chaintipHash: hex64,
    bitmap: z.string(),
    utxos: z.array(z.object({ height, scriptPubKey: z.object({ hex: script }) })),
  })
  .refine(({ bitmap, utxos }) => bitmap.split('1').length === utxos.length + 1)
  .transform(({ utxos, ...answer }) => ({
    ...answer,
    utxos: utxos.map((coin): PreviousOutput => ({ height: coin.height, script: coin.scriptPubKey.hex })),
  }));
