import { env } from 'node:process';
import { TINY } from '../support/limits.ts';
import { SETUP, tier } from '../support/tier.ts';

/** Number of parallel workers. CI has two cores, but a file waits for its processes and servers half of its time. */
const WORKERS = 3;

const FILES = 'test/exhaustive/**/*.test.ts';
const { test } = tier(FILES, { testTimeout: 1_800_000 });
const { reporters, sequence, ...alone } = test ?? {};

/**
 * Setup of all projects except `alone`. Their processes run bundles of the program, which start faster. The files of the folder `alone`
 * count the open files and the memory of processes, and need a machine on which nothing else runs. They run the checkout.
 */
const setupFiles = [...SETUP, 'test/support/useBundles.ts'];
const shared = { ...alone, globalSetup: ['test/support/globalSetup.ts', 'test/support/bundles.ts'], setupFiles };

export default {
  test: {
    reporters,
    sequence,
    projects: [
      // The files of a worker share the modules of the program, as in `npm test`, because loading them takes seconds.
      {
        test: {
          ...shared,
          name: 'parallel',
          include: [FILES],
          exclude: ['test/exhaustive/{alone,tiny}/**'],
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      // Short chains that cross no default limit, and a suite that `npm test` runs with default limits.
      {
        test: {
          ...shared,
          name: 'tiny',
          include: ['test/exhaustive/tiny/*.test.ts'],
          setupFiles: [...setupFiles, 'test/support/crossed.ts'],
          env: { LIMITS: JSON.stringify(TINY), FC_RUNS: env['FC_RUNS'] ?? '2' },
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...alone,
          name: 'alone',
          include: ['test/exhaustive/alone/*.test.ts'],
          isolate: false,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
};
