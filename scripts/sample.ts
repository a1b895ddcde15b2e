/** `npm run sample`: see src/sample/command.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SAMPLE_COMMAND, writeSample } from '../src/sample/command.ts';

void runCommand(SAMPLE_COMMAND, process.argv.slice(2), writeSample);
