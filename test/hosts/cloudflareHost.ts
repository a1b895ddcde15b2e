/**
 * The worker as it is deployed: bundled by wrangler from hosting/cloudflare/wrangler.jsonc, run by workerd, Cloudflare's own runtime, with an
 * R2 bucket on this machine. Both are of the package in this folder.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { messageOf } from '../../src/errors.ts';
import { filesBelow, temporaryFolder } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { type LocalHost, sendTo } from '../support/server.ts';

const PACKAGES = join(ROOT, 'test/hosts/node_modules');
const FOLDER = join(ROOT, 'hosting/cloudflare');

// The parts of miniflare that are used. Its own types are not imported, so that the project type-checks without it installed.
interface R2Bucket {
  put(key: string, value: string): Promise<unknown>;
  delete(keys: string[]): Promise<void>;
}
interface Miniflare {
  readonly ready: Promise<URL>;
  getR2Bucket(name: string): Promise<R2Bucket>;
  dispose(): Promise<void>;
}
type MiniflareClass = new (options: object) => Miniflare;

export interface CloudflareHost extends LocalHost {
  /** Puts the files of a build into the bucket. */
  put(dist: string, prefix?: string): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
  /** What the worker wrote to its console so far. */
  log(): string;
}

let bundled: string | undefined;

/** The file that `wrangler deploy` would upload. */
function bundle(): string {
  if (bundled !== undefined) return bundled;
  const out = temporaryFolder();
  const program = join(PACKAGES, 'wrangler/bin/wrangler.js');
  if (!existsSync(program)) throw new Error('not installed: wrangler. Run: npm ci --prefix test/hosts');
  const env = { PATH: process.env['PATH'], HOME: out, CI: '1', WRANGLER_SEND_METRICS: 'false' };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [program, 'deploy', '--dry-run', '--config', 'wrangler.jsonc', '--outdir', out],
    {
      cwd: FOLDER,
      env,
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`wrangler failed: ${stdout}${stderr}`);
  bundled = join(out, 'worker.js');
  return bundled;
}

const compatibilityDate = () => /"compatibility_date": "([0-9-]+)"/.exec(readFileSync(join(FOLDER, 'wrangler.jsonc'), 'utf8'))?.[1];

/** Starts the worker with these variables, and with an empty R2 bucket as BUCKET unless there is an ORIGIN. */
export async function startCloudflare(
  settings: Readonly<Record<string, string>> = {},
  hasBucket = !('ORIGIN' in settings),
): Promise<CloudflareHost> {
  const { Miniflare } = (await import('miniflare' as string)) as { readonly Miniflare: MiniflareClass };
  const log: string[] = [];
  const miniflare = new Miniflare({
    modules: true,
    scriptPath: bundle(),
    // The script's name within it: one that leads out of the working directory ends workerd.
    modulesRoot: dirname(bundle()),
    compatibilityDate: compatibilityDate(),
    bindings: settings,
    r2Buckets: hasBucket ? ['BUCKET'] : [],
    // Not what Cloudflare says about this machine, which would be asked for.
    cf: false,
    host: '127.0.0.1',
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const stream of [stdout, stderr]) stream.setEncoding('utf8').on('data', (text: string) => log.push(text));
    },
  });
  const ready = miniflare.ready.catch((error: unknown) => {
    throw new Error(`${messageOf(error)} ${log.join('')}`);
  });
  const port = Number((await ready).port);
  return {
    port,
    send: sendTo(port),
    put: async (dist, prefix = '') => {
      const bucket = await miniflare.getR2Bucket('BUCKET');
      for (const path of filesBelow(dist)) await bucket.put(prefix + path, readFileSync(join(dist, path), 'utf8'));
    },
    remove: async (keys) => (await miniflare.getR2Bucket('BUCKET')).delete([...keys]),
    log: () => log.join(''),
    close: () => miniflare.dispose(),
  };
}
