/** `npm run export`: see src/export/exportCommand.ts. */
import { runCommand } from '../src/cli/run.ts';
import { EXPORT_COMMAND, runExport } from '../src/export/exportCommand.ts';

void runCommand(EXPORT_COMMAND, process.argv.slice(2), runExport);
