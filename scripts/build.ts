/** `npm run build`: flags are in src/engine/buildCommand.ts, the steps in src/engine/build.ts. */
import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { BUILD_COMMAND, buildOptions } from '../src/engine/buildCommand.ts';
import { explainInterruption } from '../src/engine/interruption.ts';

/**
 * Loads the build in the same way as this file was loaded: by require() from run.cjs, whose loader supports only
 * require(), and otherwise by import(). If both were used, the process would have two copies of each module, and
 * `instanceof` would not recognise the errors of the other copy.
 */
const load = async (): Promise<typeof import('../src/engine/build.ts')> =>
  typeof require === 'function' ? require('../src/engine/build.ts') : import('../src/engine/build.ts');

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  const [options, progress] = [buildOptions(flags), Progress.of(flags, log)];
  if (!options.dryRun) explainInterruption(options.out, log);
  // Loads the build only after the flags are checked, so that --help is fast.
  const { build } = await load();
  await build(options, log, progress);
});
