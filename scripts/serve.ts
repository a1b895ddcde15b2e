/** `npm start`: flags are in src/hosts/command.ts, the server in src/hosts/node.ts. */
import { runCommand } from '../src/cli/run.ts';
import { SERVE_COMMAND, serve } from '../src/hosts/command.ts';

void runCommand(SERVE_COMMAND, process.argv.slice(2), serve);
