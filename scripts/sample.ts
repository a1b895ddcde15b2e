/** `npm run sample`: see tools/sample.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SAMPLE_COMMAND, writeSample } from '../tools/sample.ts';

void runCommand(SAMPLE_COMMAND, process.argv.slice(2), writeSample);
