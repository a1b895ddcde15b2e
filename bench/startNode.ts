/**
 * The chain of bench/start.ts, as a module for test/support/fakeNodeProcess.ts. Its blocks are empty. The node answers
 * a request for any output, because `outputs` invents it.
 */
import { createHash } from 'node:crypto';
import { chainOf } from '../test/support/fakeNode.ts';
import type { GeneratedChain } from '../test/support/fakeNodeProcess.ts';

/**
 * MADE is the height of the block that created all outputs. TIP is the height of the last block. Between them, a level
 * of lists ends (src/format/levels.ts), because a pull can start only after such an end.
 */
export const [MADE, TIP] = [287, 440] as const;
/** Number of addresses that own outputs. */
export const OWNERS = 2 ** 20;

/** Returns the script of an owner: taproot, with a different key for each owner. */
export const scriptOf = (owner: number): Uint8Array =>
  Buffer.concat([Uint8Array.of(0x51, 32), createHash('sha256').update(`${owner}`).digest()]);

/** Returns the owner of the output `txid:vout`: the first 20 bits of its transaction id. */
export const ownerOf = (outpoint: string): number => Number.parseInt(outpoint.slice(0, 5), 16);

export default (): GeneratedChain => ({
  blocks: chainOf(0, new Array(TIP + 1).fill([])),
  outputs: (outpoint) => ({ script: scriptOf(ownerOf(outpoint)), height: MADE }),
});
