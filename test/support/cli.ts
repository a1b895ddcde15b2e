/** Runs the commands as a user does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export const ROOT = new URL('../../', import.meta.url).pathname;

/** Path of the script that runs commands: the project's script, or a bundle (bundles.ts), which starts in half of the CPU time. */
export const RUNNER = process.env['MIRROR_TEST_PROGRAM'] ?? join(ROOT, 'scripts/run.cjs');

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Path of the module that runs commands. The path is a variable so that the compiler does not follow the import: browser tests are compiled
 * with other types than the program.
 */
const COMMANDS = './command.ts';

let running: Promise<unknown> = Promise.resolve();

/**
 * Runs a command to its end in this process, because starting a process takes a second. Runs only one command at a time, because the
 * folder, the exit code and the output belong to the process.
 */
export function run(command: string, args: readonly string[], cwd: string): Promise<Finished> {
  // Imported only on use, because importing the commands loads the complete program, and most test files need other parts of this module.
  const finished = running.then(async () => ((await import(COMMANDS)) as { runHere: typeof run }).runHere(command, args, cwd));
  running = finished.catch(() => undefined);
  return finished;
}

/** Starts a command in a folder, as a separate process. */
export function start(command: string, args: readonly string[], cwd: string): ChildProcess {
  return spawn(process.execPath, [RUNNER, command, ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Returns what a process says, which grows while it runs. */
export function saidBy(child: ChildProcess): { stdout: string; stderr: string } {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  return said;
}

/** Waits until a process says what the pattern matches. Rejects with all that it said if it ends before. */
export function untilSaid(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  const said = saidBy(child);
  return new Promise((resolve, reject) => {
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.on('data', () => {
        const found = pattern.exec(said[name]);
        if (found !== null) resolve(found);
      });
    child.on('error', reject).on('close', (code, signal) => {
      reject(new Error(`the process ended (${signal ?? code}) and did not say ${pattern}: ${said.stdout}${said.stderr}`));
    });
  });
}

/** Waits until a server says its address, and returns the port. */
export const portOf = async (child: ChildProcess): Promise<number> => Number((await untilSaid(child, /127\.0\.0\.1:(\d+)\D/))[1]);

export const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

/** Waits until a process has ended, also if that was before, and returns its exit code and the signal that ended it. */
export async function endOf(child: ChildProcess): Promise<[code: number | null, signal: NodeJS.Signals | null]> {
  if (!hasEnded(child)) await once(child, 'exit');
  return [child.exitCode, child.signalCode];
}

/** Waits for the end of a process. */
export function finished(child: ChildProcess): Promise<Finished> {
  const said = saidBy(child);
  return new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve({ code, ...said })));
}

/** Runs a command in a separate process to its end. */
export const runProcess = (command: string, args: readonly string[], cwd: string): Promise<Finished> => finished(start(command, args, cwd));
