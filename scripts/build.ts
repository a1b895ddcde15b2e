/** `npm run build`: see src/build/command.ts for the flags and src/build/build.ts for what it does. */
import { build } from '../src/build/build.ts';
import { BUILD_COMMAND, buildOptions } from '../src/build/command.ts';
import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  await build(buildOptions(flags), log, Progress.of(flags, log));
});
