/**
 * Setup of all test files: ends programs for which a file waits synchronously, as with spawnSync. The time of a test does not end them, so
 * one that hangs would stop the whole run.
 */
import childProcess, { type SpawnSyncReturns } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const LIMITS = { timeout: 600_000, killSignal: 'SIGKILL' };
const limited =
  <T>(run: (file: string, args: readonly string[], options: object) => T) =>
  (file: string, ...rest: readonly unknown[]): T => {
    const [args, options] = Array.isArray(rest[0]) ? rest : [[], rest[0]];
    return run(file, args as string[], { ...LIMITS, ...(options as object | undefined) });
  };

const { execFileSync, spawnSync } = childProcess;
// The files of a worker share the module, but each runs its setup.
if (execFileSync.name !== '') {
  Object.assign(childProcess, {
    execFileSync: limited(execFileSync),
    spawnSync: limited((...args: Parameters<typeof spawnSync>): SpawnSyncReturns<Buffer | string> => {
      const result = spawnSync(...args);
      if ((result.error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT') throw result.error;
      return result;
    }),
  });
  syncBuiltinESMExports();
}
