/** `npm run sample`: see src/input/sample/sampleCommand.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SAMPLE_COMMAND, writeSample } from '../src/input/sample/sampleCommand.ts';

void runCommand(SAMPLE_COMMAND, process.argv.slice(2), writeSample);
