import { BENCH_COMMAND, bench } from '../bench/bench.ts';
import { runCommand } from '../src/cli/run.ts';

void runCommand(BENCH_COMMAND, process.argv.slice(2), bench);
