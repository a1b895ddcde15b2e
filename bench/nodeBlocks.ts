/** The chain of bench/node.ts for test/support/fakeNodeProcess.ts. The variable BENCH_CHAIN names its folder. */
import { env } from 'node:process';
import { blocksIn } from '../test/support/blockFiles.ts';
import type { GeneratedChain } from '../test/support/fakeNodeProcess.ts';

/** Any output that the blocks spend and do not have: old, and able to commit to a name. */
const OUTPUT = { script: Uint8Array.of(0x51, 32, ...new Array<number>(32).fill(7)), height: 900_000 };

export default (): GeneratedChain => ({ blocks: blocksIn(env['BENCH_CHAIN'] ?? ''), outputs: () => OUTPUT });
