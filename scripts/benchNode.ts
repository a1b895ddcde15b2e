import { BENCH_NODE_COMMAND, benchNode } from '../bench/node.ts';
import { runCommand } from '../src/cli/run.ts';

void runCommand(BENCH_NODE_COMMAND, process.argv.slice(2), benchNode);
