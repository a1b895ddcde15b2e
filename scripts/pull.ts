/** `npm run pull`: flags are in src/pull/command.ts, the steps in src/pull/pull.ts. */
import { runCommand } from '../src/cli/run.ts';
import { PULL_COMMAND, runPull } from '../src/pull/command.ts';

void runCommand(PULL_COMMAND, process.argv.slice(2), runPull);
