/** `npm run keygen`: see src/output/keygenCommand.ts. */
import { runCommand } from '../src/cli/run.ts';
import { KEYGEN_COMMAND, runKeygen } from '../src/output/keygenCommand.ts';

void runCommand(KEYGEN_COMMAND, process.argv.slice(2), runKeygen);
