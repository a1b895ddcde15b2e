/** `npm run verify`: flags are in src/verify/verifyCommand.ts, the checks in src/verify/verify.ts. */
import { runCommand } from '../src/cli/run.ts';
import { runVerify, VERIFY_COMMAND } from '../src/verify/verifyCommand.ts';

void runCommand(VERIFY_COMMAND, process.argv.slice(2), runVerify);
