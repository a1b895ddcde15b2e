import { env } from 'node:process';
import { TINY } from '../support/limits.ts';
import { tier } from '../support/tier.ts';

/**
 * Suites that count open files, measure memory or depend on the timing of processes, so nothing may run beside them.
 */
const ALONE = ['overload', 'workers'].map((name) => `test/exhaustive/${name}.test.ts`);

/** Suites that run with tiny limits (test/support/limits.ts). They fail if their data does not cross these limits. */
const TINY_LIMITS = [
  ...['nodeKill', 'nodeChains'].map((name) => `test/exhaustive/${name}.test.ts`),
  ...['lists/etchings', 'exhaustive/lists/activityLists', 'serve/server'].map((name) => `test/${name}.test.ts`),
];

/** Suites that run only with tiny limits: their short chains would cross no default limit. */
const ONLY_TINY = ['test/exhaustive/nodeChains.test.ts'];

/** Number of parallel workers. CI has two cores, but a file waits for its processes and servers half of its time. */
const WORKERS = 3;

const FILES = 'test/{exhaustive,rehearsal/model}/**/*.test.ts';
const { test } = tier(FILES, { testTimeout: 600_000 });
const { reporters, sequence, ...alone } = test ?? {};

/**
 * Setup of all projects except `alone`. Their processes run bundles of the program, which start faster. The files of
 * `alone` count the open files and the memory of processes, so they run the checkout.
 */
const setupFiles = ['test/support/seed.ts', 'test/support/useBundles.ts'];
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
          exclude: [...ALONE, ...ONLY_TINY],
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'tiny',
          include: TINY_LIMITS,
          setupFiles: [...setupFiles, 'test/support/crossed.ts'],
          env: { LIMITS: JSON.stringify(TINY), KILLS: '2', FC_RUNS: env['FC_RUNS'] ?? '2' },
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...alone, name: 'alone', include: ALONE, isolate: false, fileParallelism: false, sequence: { groupOrder: 2 } } },
    ],
  },
};
