import { runCommand } from '../src/cli/run.ts';
import { SAMPLE_COMMAND, writeSample } from '../src/input/sampleCommand.ts';

void runCommand(SAMPLE_COMMAND, process.argv.slice(2), writeSample);
