/** `npm run build`: see src/pipeline/command.ts for the flags and src/pipeline/build.ts for what it does. */
import { createRequire } from 'node:module';
import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { BUILD_COMMAND, buildOptions } from '../src/pipeline/command.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  const [options, progress] = [buildOptions(flags), Progress.of(flags, log)];
  // Not import(): the loader of run.cjs knows only require().
  const { build } = createRequire(import.meta.url)('../src/pipeline/build.ts') as typeof import('../src/pipeline/build.ts');
  await build(options, log, progress);
});
