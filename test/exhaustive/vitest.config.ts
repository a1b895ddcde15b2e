import { tier } from '../support/tier.ts';

// One file at a time: most of them count files, memory or moments of other processes.
export default tier('test/exhaustive/*.test.ts', { isolate: false, fileParallelism: false, testTimeout: 3_600_000 });
