/** The command `rune-mirror build`. */
import { Progress } from '../src/cli/progress.ts';
import { runCommand } from '../src/cli/run.ts';
import { BUILD_COMMAND, buildOptions } from '../src/engine/buildCommand.ts';
import { explainInterruption } from '../src/engine/interruption.ts';

void runCommand(BUILD_COMMAND, process.argv.slice(2), async (flags, log) => {
  const [options, progress] = [buildOptions(flags), Progress.of(flags, log)];
  if (!options.dryRun) explainInterruption(options.out, log);
  // Loads the build and DuckDB only after the flags are checked, so that `--help` is fast.
  const { build } = await import('../src/engine/build.ts');
  await build(options, log, progress);
});
