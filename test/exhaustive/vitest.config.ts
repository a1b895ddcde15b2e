import { env } from 'node:process';
import { tier } from '../support/tier.ts';

/** Files that measure nothing and watch no other process, so two of them may run at once. */
const PARALLEL = [
  ...[
    'client',
    'clientTypes',
    'damagedState',
    'histories',
    'inputForms',
    'kill',
    'locks',
    'nodeChains',
    'nodeFollow',
    'nodeKill',
    'archive',
  ],
  ...['archiveBuild', 'archiveFaults', 'largeBlock', 'pullDatabase', 'pullJoined', 'pullKill', 'shellBlocks', 'terminal', 'verify'],
].map((name) => `test/exhaustive/${name}.test.ts`);

/** Files of `npm test` that draw more random cases here. */
const MORE = ['test/ioErrors.test.ts', 'test/leftOut.test.ts'];

const { test } = tier('test/exhaustive/*.test.ts', { testTimeout: 3_600_000 });
const { reporters, sequence, ...shared } = test ?? {};

export default {
  test: {
    reporters,
    sequence,
    projects: [
      { test: { ...shared, name: 'parallel', include: PARALLEL, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        test: {
          ...shared,
          name: 'more',
          include: MORE,
          env: { FC_RUNS: env['FC_RUNS'] ?? '4', IO_FAULTS: env['IO_FAULTS'] ?? '16' },
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // One file at a time: these count files, memory or moments of other processes.
      { test: { ...shared, name: 'alone', exclude: PARALLEL, isolate: false, fileParallelism: false, sequence: { groupOrder: 2 } } },
    ],
  },
};
