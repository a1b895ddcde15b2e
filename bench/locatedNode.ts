/**
 * The chain of bench/located.ts, as a module for test/support/fakeNodeProcess.ts. It has one block. The node answers a
 * request for any output, because `outputs` invents it.
 */
import { createHash } from 'node:crypto';
import { chainOf } from '../test/support/fakeNode.ts';
import type { GeneratedChain } from '../test/support/fakeNodeProcess.ts';

/** Returns the script of an output: taproot, with a different key for each output. */
export const scriptOfOutput = (outpoint: string): Uint8Array =>
  Buffer.concat([Uint8Array.of(0x51, 32), createHash('sha256').update(outpoint).digest()]);

export default (): GeneratedChain => ({
  blocks: chainOf(0, [[]]),
  outputs: (outpoint) => ({ script: scriptOfOutput(outpoint), height: 0 }),
});
