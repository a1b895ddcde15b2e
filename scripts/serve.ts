/** `npm start`: flags are in src/serve/serveCommand.ts, the server in src/serve/local/server.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SERVE_COMMAND, serve } from '../src/serve/serveCommand.ts';

void runCommand(SERVE_COMMAND, process.argv.slice(2), serve);
