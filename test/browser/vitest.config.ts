import { tier } from '../support/tier.ts';

// Runs three browsers at once, because each often waits for its page.
export default tier('test/browser/*.test.ts', { globalSetup: ['test/browser/globalSetup.ts'], isolate: false, maxWorkers: 3 });
