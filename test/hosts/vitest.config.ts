import { tier } from '../support/tier.ts';

export default tier('test/hosts/*.test.ts', { testTimeout: 300_000, maxWorkers: 2 });
