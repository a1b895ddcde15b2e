/** `npm run sample`: see src/sample/sample.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SAMPLE_COMMAND, writeSample } from '../src/sample/sample.ts';

void runCommand(SAMPLE_COMMAND, process.argv.slice(2), writeSample);
