/** `npm run pull`: see src/pull/command.ts for the flags and src/pull/pull.ts for what it does. */
import { runCommand } from '../src/cli/run.ts';
import { PULL_COMMAND, runPull } from '../src/pull/command.ts';

void runCommand(PULL_COMMAND, process.argv.slice(2), runPull);
