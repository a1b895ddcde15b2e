/** `npm run verify`: flags are in src/verify/verifyCommand.ts, the work in src/verify/runVerify.ts. */
import { runCommand } from '../src/cli/run.ts';
import { VERIFY_COMMAND } from '../src/verify/verifyCommand.ts';

/** Loads runVerify.ts only after the flags are parsed, so that --help is fast. See build.ts about require(). */
const load = async (): Promise<typeof import('../src/verify/runVerify.ts')> =>
  typeof require === 'function' ? require('../src/verify/runVerify.ts') : import('../src/verify/runVerify.ts');

void runCommand(VERIFY_COMMAND, process.argv.slice(2), async (flags, log) => (await load()).runVerify(flags, log));
