import { runCommand } from '../src/cli/run.ts';
import { REHEARSAL_COMMAND, runRehearsal } from '../test/rehearsal/rehearsal.ts';

void runCommand(REHEARSAL_COMMAND, process.argv.slice(2), runRehearsal);
