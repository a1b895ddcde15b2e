import { runCommand } from '../src/cli/run.ts';
import { KEYGEN_COMMAND, runKeygen } from '../src/output/keygenCommand.ts';

void runCommand(KEYGEN_COMMAND, process.argv.slice(2), runKeygen);
