import { runCommand } from '../src/cli/run.ts';
import { runVerify } from '../src/verify/runVerify.ts';
import { VERIFY_COMMAND } from '../src/verify/verifyCommand.ts';

void runCommand(VERIFY_COMMAND, process.argv.slice(2), runVerify);
