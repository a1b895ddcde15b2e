/** `npm run pull`: flags are in src/pull/pullCommand.ts, the steps in src/pull/pullBlocks.ts. */
import { runCommand } from '../src/cli/run.ts';
import { PULL_COMMAND, runPull } from '../src/pull/pullCommand.ts';

void runCommand(PULL_COMMAND, process.argv.slice(2), runPull);
