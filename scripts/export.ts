/** `npm run export`: flags are in src/export/exportCommand.ts, the work in src/export/runExport.ts. */
import { runCommand } from '../src/cli/run.ts';
import { EXPORT_COMMAND } from '../src/export/exportCommand.ts';

/** Loads runExport.ts only after the flags are parsed, so that --help is fast. See build.ts about require(). */
const load = async (): Promise<typeof import('../src/export/runExport.ts')> =>
  typeof require === 'function' ? require('../src/export/runExport.ts') : import('../src/export/runExport.ts');

void runCommand(EXPORT_COMMAND, process.argv.slice(2), async (flags, log) => (await load()).runExport(flags, log));
