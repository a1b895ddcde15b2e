/** Answers of Bitcoin Core: the fields that are read, their rules, and the largest sizes. */
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { PassingError } from '../client.ts';
import { HIGHEST } from '../source.ts';
import { parsed } from './calls.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

/** Bytes around the result in an answer of the RPC interface. */
export const ENVELOPE_BYTES = 1000;

/** Largest answer about the chain or the node, in bytes. */
export const SMALL_ANSWER = 1_000_000;

/**
 * Largest JSON of a block or transaction that is read, in bytes. A block of 1.6 MB has about 13 MB; the largest block has
 * less than 64 MB, even if all scripts are opcodes, or all inputs spend multisignature outputs.
 */
export const LARGEST_JSON = 128 * 1024 * 1024;

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
export const transaction = z.object({ txid: z.string(), vin: z.array(z.unknown()) });
export const jsonBlock = z.object({ tx: z.array(transaction) });
/** An output script in hex. One of more than 10,000 bytes cannot be spent. */
const script = z.string().regex(/^(?:[0-9a-f]{2}){0,10000}$/);
const spendingInput = z.object({ prevout: z.object({ height, scriptPubKey: z.object({ hex: script }) }).optional() });

/** An input of a transaction in the block, by its index. */
export interface WantedOutput {
  readonly txid: string;
  readonly input: number;
}

export function bytesOf(hex: string): Uint8Array {
  const bytes = Buffer.from(hex, 'hex');
  // Buffer.from() stops at the first character that is not hex.
  if (2 * bytes.length !== hex.length) throw new PassingError('is damaged: it is not hex');
  return bytes;
}

/** Picks the spent outputs out of the inputs of transactions. Returns undefined if the inputs do not have them. */
export function pick(inputs: ReadonlyMap<string, readonly unknown[]>, wanted: readonly WantedOutput[]): PreviousOutput[] | undefined {
  const found: PreviousOutput[] = [];
  for (const { txid, input } of wanted) {
    const raw = inputs.get(txid)?.[input];
    if (raw === undefined) throw new PassingError(`lack input ${input} of transaction ${txid}`);
    const { prevout } = parsed(raw, spendingInput);
    if (!prevout) return undefined;
    found.push({ script: bytesOf(prevout.scriptPubKey.hex), height: prevout.height });
  }
  return found;
}
