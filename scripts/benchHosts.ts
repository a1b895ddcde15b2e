import { BENCH_HOSTS_COMMAND, benchHosts } from '../bench/hosts.ts';
import { runCommand } from '../src/cli/run.ts';

void runCommand(BENCH_HOSTS_COMMAND, process.argv.slice(2), benchHosts);
