import { tier } from '../support/tier.ts';

// Three browsers at once: most of a page's time is the half second without requests that openPage waits for.
export default tier('test/browser/*.test.ts', { globalSetup: ['test/browser/globalSetup.ts'], maxWorkers: 3 });
