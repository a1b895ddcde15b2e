/** The commands of users, by the names of their files in `scripts/`. */
import { BENCH_COMMAND } from '../../bench/bench.ts';
import { BENCH_HOSTS_COMMAND } from '../../bench/hosts.ts';
import { BENCH_NODE_COMMAND } from '../../bench/node.ts';
import type { Command } from '../../src/cli/flags.ts';
import { BUILD_COMMAND } from '../../src/engine/buildCommand.ts';
import { EXPORT_COMMAND } from '../../src/export/exportCommand.ts';
import { SAMPLE_COMMAND } from '../../src/input/sampleCommand.ts';
import { KEYGEN_COMMAND } from '../../src/output/keygenCommand.ts';
import { PULL_COMMAND } from '../../src/pull/pullCommand.ts';
import { SERVE_COMMAND } from '../../src/serve/serveCommand.ts';
import { INIT_COMMAND } from '../../src/setup/initCommand.ts';
import { UPDATE_COMMAND } from '../../src/setup/updateCommand.ts';
import { VERIFY_COMMAND } from '../../src/verify/verifyCommand.ts';
import { REHEARSAL_COMMAND } from '../rehearsal/rehearsal.ts';

export const COMMANDS: Readonly<Record<string, Command>> = {
  bench: BENCH_COMMAND,
  benchHosts: BENCH_HOSTS_COMMAND,
  benchNode: BENCH_NODE_COMMAND,
  build: BUILD_COMMAND,
  export: EXPORT_COMMAND,
  init: INIT_COMMAND,
  keygen: KEYGEN_COMMAND,
  pull: PULL_COMMAND,
  rehearsal: REHEARSAL_COMMAND,
  sample: SAMPLE_COMMAND,
  serve: SERVE_COMMAND,
  update: UPDATE_COMMAND,
  verify: VERIFY_COMMAND,
};
