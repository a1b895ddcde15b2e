/** Runs the local server in Deno and Bun, with the exact commands of hosting/README.md. The package in this folder has both programs. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOf, portOf, ROOT, saidBy } from '../support/cli.ts';
import { type LocalHost, sendTo } from '../support/server.ts';

const PACKAGES = join(ROOT, 'test/hosts/node_modules');
const README = join(ROOT, 'hosting/README.md');

export const RUNTIMES = ['deno', 'bun'] as const;
export type Runtime = (typeof RUNTIMES)[number];

const PROGRAMS: Readonly<Record<Runtime, string>> = {
  deno: join(PACKAGES, 'deno', process.platform === 'win32' ? 'deno.exe' : 'deno'),
  bun: join(PACKAGES, 'bun/bin/bun.exe'),
};

export interface RuntimeHost extends LocalHost {
  /** Returns the standard error of the process so far. */
  errors(): string;
  /** Sends SIGTERM and waits for the end. Resolves to the exit code. */
  stop(): Promise<number | null>;
}

/**
 * Returns the documented command for a runtime. Replaces the folder and the port that the README names, also in the permissions of the
 * command.
 */
function argumentsFor(runtime: Runtime, dist: string): string[] {
  const line = new RegExp(`^(${runtime} .*scripts/serve\\.ts)$`, 'm').exec(readFileSync(README, 'utf8'))?.[1];
  if (line === undefined) throw new Error(`${README} has no line for ${runtime}`);
  const args = line
    .replace('--allow-read=dist', `--allow-read=${dist}`)
    .replace('--allow-net=127.0.0.1:3000', '--allow-net=127.0.0.1')
    .split(' ');
  return [...args.slice(1), '--dir', dist, '--port', '0'];
}

/** Starts the server. Resolves when the server listens. */
export async function startRuntime(runtime: Runtime, dist: string): Promise<RuntimeHost> {
  const program = PROGRAMS[runtime];
  if (!existsSync(program))
    throw new Error(`not installed: ${runtime} (its install script puts the program in place). Run: npm ci --prefix test/hosts`);
  const child = spawn(program, argumentsFor(runtime, dist), {
    cwd: ROOT,
    env: { NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1', DENO_DIR: join(PACKAGES, '.cache/deno'), HOME: join(PACKAGES, '.cache') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endWithParent = () => child.kill('SIGKILL');
  process.once('exit', endWithParent);
  child.once('close', () => process.off('exit', endWithParent));
  const said = saidBy(child);
  const port = await portOf(child);
  const stop = async () => {
    child.kill('SIGTERM');
    return (await endOf(child))[0];
  };
  return { port, send: sendTo(port), errors: () => said.stderr, stop, close: async () => void (await stop()) };
}
