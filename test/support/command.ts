/** Runs commands in this process, for `run` of cli.ts. */
import { BENCH_COMMAND, bench } from '../../bench/bench.ts';
import { Progress } from '../../src/cli/progress.ts';
import { runCommand } from '../../src/cli/run.ts';
import { build } from '../../src/engine/build.ts';
import { BUILD_COMMAND, buildOptions } from '../../src/engine/buildCommand.ts';
import { EXPORT_COMMAND } from '../../src/export/exportCommand.ts';
import { runExport } from '../../src/export/runExport.ts';
import { SAMPLE_COMMAND, writeSample } from '../../src/input/sampleCommand.ts';
import { KEYGEN_COMMAND, runKeygen } from '../../src/output/keygenCommand.ts';
import { PULL_COMMAND } from '../../src/pull/pullCommand.ts';
import { runPull } from '../../src/pull/runPull.ts';
import { runVerify } from '../../src/verify/runVerify.ts';
import { VERIFY_COMMAND } from '../../src/verify/verifyCommand.ts';
import type { Finished } from './cli.ts';

/** Arguments that the files of `scripts/` pass to runCommand(). */
const COMMANDS: Readonly<Record<string, readonly [Parameters<typeof runCommand>[0], Parameters<typeof runCommand>[2]]>> = {
  bench: [BENCH_COMMAND, bench],
  build: [BUILD_COMMAND, async (flags, log) => void (await build(buildOptions(flags), log, Progress.of(flags, log)))],
  export: [EXPORT_COMMAND, runExport],
  keygen: [KEYGEN_COMMAND, runKeygen],
  pull: [PULL_COMMAND, runPull],
  sample: [SAMPLE_COMMAND, writeSample],
  verify: [VERIFY_COMMAND, runVerify],
};

/** Runs a command. Rejects if the command has no entry above. */
export async function runHere(command: string, args: readonly string[], cwd: string): Promise<Finished> {
  const [described, main] = COMMANDS[command] ?? [];
  if (described === undefined || main === undefined) throw new Error(`${command} cannot run here: use runProcess()`);
  const before = { cwd: process.cwd(), exitCode: process.exitCode };
  const streams = (['stdout', 'stderr'] as const).map((name) => {
    const stream = process[name];
    const { write } = stream;
    const listeners = stream.listeners('error');
    const chunks: string[] = [];
    stream.write = (chunk: string | Uint8Array): boolean => {
      chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
      return true;
    };
    const restore = (): string => {
      stream.write = write;
      for (const listener of stream.listeners('error').filter((one) => !listeners.includes(one)))
        stream.off('error', listener as (error: Error) => void);
      return chunks.join('');
    };
    return restore;
  });
  process.chdir(cwd);
  process.exitCode = undefined;
  const caught = process.listeners('uncaughtException');
  try {
    await runCommand(described, args, main);
  } finally {
    process.chdir(before.cwd);
    for (const listener of process.listeners('uncaughtException').filter((one) => !caught.includes(one)))
      process.off('uncaughtException', listener);
  }
  const code = Number(process.exitCode ?? 0);
  process.exitCode = before.exitCode;
  const [stdout = '', stderr = ''] = streams.map((restore) => restore());
  return { code, stdout, stderr };
}
