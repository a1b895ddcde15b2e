import { runCommand } from '../src/cli/run.ts';
import { EXPORT_COMMAND } from '../src/export/exportCommand.ts';
import { runExport } from '../src/export/runExport.ts';

void runCommand(EXPORT_COMMAND, process.argv.slice(2), runExport);
