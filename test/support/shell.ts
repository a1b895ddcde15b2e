/** Runs the shell blocks of documents, with a fresh copy of the project for each document. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from './build.ts';
import { ROOT } from './cli.ts';
import { freePort } from './ports.ts';
import { until } from './until.ts';

/** The default address of `npm start`, which the documents use. */
const ADDRESS = '127.0.0.1:3000';

/**
 * Shell functions that precede each block. `npm ci` does nothing, because the packages of this project are linked into the copy, and CI
 * tests the installation. `npm start` runs in the background, in its own process group, and returns when the server answers. It first ends
 * the server of an earlier block, as a reader would.
 */
const PRELUDE = `
npm() {
  case "$1" in
    ci) ;;
    start)
      shift
      if [ "\${1:-}" = -- ]; then shift; fi
      for group in $(cat servers 2>/dev/null); do
        while kill -TERM -- "-$group" 2>/dev/null; do sleep 0.1; done
      done
      rm -f servers
      set -m
      command npm start -- --port "$MIRROR_PORT" "$@" >server.log 2>&1 &
      set +m
      echo $! >>servers
      for _ in $(seq 600); do
        if grep -q '^Serving' server.log; then return; fi
        kill -0 $! || { cat server.log >&2; return 1; }
        sleep 0.1
      done
      return 1
      ;;
    *) command npm "$@" ;;
  esac
}
`;

interface BlockRun {
  readonly code: number | null;
  readonly output: string;
}

/**
 * Path of every copy. The copies have the same path, one after another, because compiled code is cached by path: so the program is compiled
 * only once.
 */
let place: string | undefined;

/** A copy of the project, in which the shell blocks of one document run one after another. `close` frees the path for the next copy. */
export class ProjectCopy {
  readonly #folder: string;
  readonly #port: number;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  /** Copies all files that git tracks or would add. */
  static async make(): Promise<ProjectCopy> {
    place ??= temporaryFolder();
    const folder = join(place, 'project');
    if (existsSync(folder)) throw new Error('the copy before is still in use');
    try {
      const paths = execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' }).split('\0');
      for (const path of paths) {
        if (path !== '' && !path.startsWith('test/fixtures/golden/')) copyIfThere(join(ROOT, path), join(folder, path));
      }
      symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      return new ProjectCopy(folder, await freePort());
    } catch (error) {
      // Frees the path, so that only this document fails.
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Runs a shell block. A server that the block starts with `npm start` keeps running. */
  async run(block: string): Promise<BlockRun> {
    const script = `${PRELUDE}${block.replaceAll(ADDRESS, `127.0.0.1:${this.#port}`)}`;
    const child = spawn('bash', ['-eu', '-c', script], {
      cwd: this.#folder,
      env: { ...process.env, MIRROR_PORT: String(this.#port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
      });
    }
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, output };
  }

  /** Ends the servers that shell blocks started, waits for their end, and moves the copy of the project away. */
  async close(): Promise<void> {
    const list = join(this.#folder, 'servers');
    const groups = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n').map(Number) : [];
    for (const group of groups) {
      await until(() => !terminate(group));
    }
    renameSync(this.#folder, join(temporaryFolder(), 'project'));
  }
}

/** Copies a file, unless it was deleted after git listed it. */
function copyIfThere(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  try {
    cpSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Sends SIGTERM to a process group. Returns false if it has ended. */
function terminate(group: number): boolean {
  try {
    return process.kill(-group, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
