import { runCommand } from '../src/cli/run.ts';
import { SERVE_COMMAND, serve } from '../src/serve/serveCommand.ts';

void runCommand(SERVE_COMMAND, process.argv.slice(2), serve);
