/** `npm run merge`: see src/merge/command.ts for the flags and src/merge/merge.ts for what it does. */
import { runCommand } from '../src/cli/run.ts';
import { MERGE_COMMAND, runMerge } from '../src/merge/command.ts';

void runCommand(MERGE_COMMAND, process.argv.slice(2), runMerge);
