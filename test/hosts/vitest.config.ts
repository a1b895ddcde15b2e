import { tier } from '../support/tier.ts';

export default tier('test/hosts/*.test.ts', { testTimeout: 600_000, isolate: false, maxWorkers: 2 });
