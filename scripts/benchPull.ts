/** `npm run bench:pull`: see bench/pull.ts. */
import { BENCH_PULL_COMMAND, benchPull } from '../bench/pull.ts';
import { runCommand } from '../src/cli/run.ts';

void runCommand(BENCH_PULL_COMMAND, process.argv.slice(2), benchPull);
