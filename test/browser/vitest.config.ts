import { tier } from '../support/tier.ts';

// One browser at a time: two would make each other's pages slow.
export default tier('test/browser/*.test.ts', { globalSetup: ['test/browser/globalSetup.ts'], fileParallelism: false });
