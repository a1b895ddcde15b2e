/** `npm start`: see src/hosts/command.ts for the flags and src/hosts/node.ts for the server. */
import { runCommand } from '../src/cli/run.ts';
import { SERVE_COMMAND, serve } from '../src/hosts/command.ts';

void runCommand(SERVE_COMMAND, process.argv.slice(2), serve);
