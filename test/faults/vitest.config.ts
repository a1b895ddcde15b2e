/** Runs any one test file for run.ts, whatever its tier: without bundles and with default limits. */
import { env } from 'node:process';

export default {
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    setupFiles: ['test/support/seed.ts'],
    // A fault is noticed by the same random cases in each run, and by few of them.
    env: { SEED: env['SEED'] ?? '1', FC_RUNS: '20', HISTORIES: '2', IO_FAULTS: '8', LIES: '2000', MEMPOOLS: '100' },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    isolate: false,
    // Runs of a copy differ in one file, so they read the others as an earlier run transformed them.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.transformed' },
  },
};
