/**
 * The chain of bench/node.ts, as a module for test/support/fakeNodeProcess.ts. The environment variable BENCH_CHAIN is
 * the path of the chain's folder.
 */
import { env } from 'node:process';
import { blocksIn } from '../test/support/blockFiles.ts';
import type { GeneratedChain } from '../test/support/fakeNodeProcess.ts';

/**
 * The output that the fake node returns for every output that the blocks spend but do not create. It is old enough to
 * commit to a rune name.
 */
const OUTPUT = { script: Uint8Array.of(0x51, 32, ...new Array<number>(32).fill(7)), height: 900_000 };

export default (): GeneratedChain => ({ blocks: blocksIn(env['BENCH_CHAIN'] ?? ''), outputs: () => OUTPUT });
