import { runCommand } from '../src/cli/run.ts';
import { INIT_COMMAND, runInit } from '../src/setup/initCommand.ts';

void runCommand(INIT_COMMAND, process.argv.slice(2), runInit);
