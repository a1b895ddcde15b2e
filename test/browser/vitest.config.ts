import { tier } from '../support/tier.ts';

// Runs three browsers at once. They mostly wait: openPage waits until a page has sent no request for half a second.
export default tier('test/browser/*.test.ts', { globalSetup: ['test/browser/globalSetup.ts'], maxWorkers: 3 });
