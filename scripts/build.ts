/** `npm run build`: see src/pipeline/command.ts for the flags and src/pipeline/build.ts for what it does. */

import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { build } from '../src/pipeline/build.ts';
import { BUILD_COMMAND, buildOptions } from '../src/pipeline/command.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  await build(buildOptions(flags), log, Progress.of(flags, log));
});
