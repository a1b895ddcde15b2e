import { tier } from './test/support/tier.ts';

// Loading the program takes seconds, so the files of a worker share its modules: no test may leave them changed.
export default tier('test/*/*.test.ts', {
  exclude: ['exhaustive', 'hosts', 'browser'].map((folder) => `test/${folder}/**`),
  isolate: false,
  maxWorkers: '100%',
});
