import { runCommand } from '../src/cli/run.ts';
import { runUpdate, UPDATE_COMMAND } from '../src/setup/updateCommand.ts';

void runCommand(UPDATE_COMMAND, process.argv.slice(2), runUpdate);
