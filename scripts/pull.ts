/** `npm run pull`: flags are in src/pull/pullCommand.ts, the steps in src/pull/pullBlocks.ts. */
import { runCommand } from '../src/cli/run.ts';
import { LIMITS } from '../src/limits.ts';
import { PULL_COMMAND, type PullModules, runPull } from '../src/pull/pullCommand.ts';

/** Loads modules by require() if this file was loaded by require() (see build.ts). */
const modules: PullModules | undefined =
  typeof require === 'function'
    ? { pull: async () => require('../src/pull/runPull.ts'), build: async () => require('../src/engine/build.ts') }
    : undefined;

void runCommand(PULL_COMMAND, process.argv.slice(2), (flags, log) => runPull(flags, log, LIMITS, modules));
