/** `npm run build`: flags are in src/pipeline/command.ts, the steps in src/pipeline/build.ts. */
import { createRequire } from 'node:module';
import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { BUILD_COMMAND, buildOptions } from '../src/pipeline/command.ts';
import { explainInterruption } from '../src/pipeline/interrupt.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  const [options, progress] = [buildOptions(flags), Progress.of(flags, log)];
  if (!options.dryRun) explainInterruption(options.out, log);
  // Load the build after the flags are checked, so that help is fast. The loader of run.cjs supports only require().
  const { build } = createRequire(import.meta.url)('../src/pipeline/build.ts') as typeof import('../src/pipeline/build.ts');
  await build(options, log, progress);
});
