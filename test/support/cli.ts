/** The commands as a user runs them: a process of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

export const ROOT = new URL('../../', import.meta.url).pathname;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a command of `scripts/` in a folder. */
export function start(command: string, args: readonly string[], cwd: string): ChildProcess {
  return spawn(process.execPath, [join(ROOT, 'scripts/run.cjs'), command, ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs a command to its end. */
export function run(command: string, args: readonly string[], cwd: string): Promise<Finished> {
  const child = start(command, args, cwd);
  const text = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk: Buffer) => {
    text.stdout += chunk.toString('utf8');
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    text.stderr += chunk.toString('utf8');
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...text }));
  });
}
