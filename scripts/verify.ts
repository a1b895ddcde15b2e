/** `npm run verify`: see src/verify/command.ts for the flags and src/verify/verify.ts for what it checks. */
import { runCommand } from '../src/cli/run.ts';
import { runVerify, VERIFY_COMMAND } from '../src/verify/command.ts';

void runCommand(VERIFY_COMMAND, process.argv.slice(2), runVerify);
