import { runCommand } from '../src/cli/run.ts';
import { PULL_COMMAND } from '../src/pull/pullCommand.ts';
import { runPull } from '../src/pull/runPull.ts';

void runCommand(PULL_COMMAND, process.argv.slice(2), runPull);
