import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { build } from '../src/engine/build.ts';
import { BUILD_COMMAND, buildOptions } from '../src/engine/buildCommand.ts';
import { explainInterruption } from '../src/output/outputFolder.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  const options = buildOptions(flags);
  if (!options.dryRun) explainInterruption(options.out, log);
  await build(options, log, Progress.of(flags, log));
});
