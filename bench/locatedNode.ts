/** The chain of bench/located.ts for test/support/fakeNodeProcess.ts: one block, and every output that is asked for. */
import { createHash } from 'node:crypto';
import { chainOf } from '../test/support/fakeNode.ts';
import type { GeneratedChain } from '../test/support/fakeNodeProcess.ts';

/** Script of an output: a taproot one with a key of its own. */
export const scriptOfOutput = (outpoint: string): Uint8Array =>
  Buffer.concat([Uint8Array.of(0x51, 32), createHash('sha256').update(outpoint).digest()]);

export default (): GeneratedChain => ({
  blocks: chainOf(0, [[]]),
  outputs: (outpoint) => ({ script: scriptOfOutput(outpoint), height: 0 }),
});
