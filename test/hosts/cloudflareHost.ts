/**
 * Starts the worker as it is deployed. wrangler bundles it as its wrangler.jsonc says, and workerd, Cloudflare's own runtime, runs it with
 * a local R2 bucket or a local folder of files. The package in this folder has both programs.
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
/** Folder with the wrangler.jsonc of each deployment. */
const FOLDERS = { r2: join(ROOT, 'hosting/cloudflare'), assets: ROOT } as const;
type Deployment = keyof typeof FOLDERS;

// The parts of miniflare that the tests use. Without an import of miniflare's types, the project type-checks even if miniflare is not
// installed.
interface R2Bucket {
  put(key: string, value: Uint8Array): Promise<unknown>;
  delete(keys: string[]): Promise<void>;
}
interface Miniflare {
  readonly ready: Promise<URL>;
  getR2Bucket(name: string): Promise<R2Bucket>;
  dispose(): Promise<void>;
}
type MiniflareClass = new (options: object) => Miniflare;

export interface Logged {
  /** Returns the output of the worker's console so far. */
  log(): string;
}

export interface CloudflareHost extends LocalHost, Logged {
  /** Copies the files of a build into the bucket. */
  put(dist: string, prefix?: string): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
}

/** The settings of a wrangler.jsonc that the tests use. */
interface Configuration {
  readonly compatibility_date: string;
  readonly assets?: {
    readonly directory: string;
    readonly binding: string;
    readonly html_handling: string;
    readonly not_found_handling: string;
    readonly run_worker_first: boolean;
  };
}

const configurationOf = (deployment: Deployment): Configuration =>
  JSON.parse(readFileSync(join(FOLDERS[deployment], 'wrangler.jsonc'), 'utf8').replace(/^\s*\/\/.*$/gm, '')) as Configuration;

const bundles = new Map<Deployment, string>();

/** Returns the script that `wrangler deploy` would upload. */
function bundle(deployment: Deployment, args: readonly string[] = []): string {
  const known = bundles.get(deployment);
  if (known !== undefined) return known;
  const out = temporaryFolder();
  const program = join(PACKAGES, 'wrangler/bin/wrangler.js');
  if (!existsSync(program)) throw new Error('not installed: wrangler. Run: npm ci --prefix test/hosts');
  const env = { PATH: process.env['PATH'], HOME: out, CI: '1', WRANGLER_SEND_METRICS: 'false' };
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [program, 'deploy', '--dry-run', '--config', 'wrangler.jsonc', '--outdir', out, ...args],
    { cwd: FOLDERS[deployment], env, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`wrangler failed: ${stdout}${stderr}`);
  // wrangler prints a warning for an unknown key in the configuration.
  if (stderr !== '' || /warning/i.test(stdout)) throw new Error(`wrangler warns: ${stdout}${stderr}`);
  const file = join(out, 'worker.js');
  bundles.set(deployment, file);
  return file;
}

/** Starts the worker with these variables. Without a variable ORIGIN, it reads from the bucket, which is empty. */
export async function startCloudflare(settings: Readonly<Record<string, string>> = {}): Promise<CloudflareHost> {
  return run(bundle('r2'), {
    compatibilityDate: configurationOf('r2').compatibility_date,
    bindings: settings,
    r2Buckets: 'ORIGIN' in settings ? [] : ['BUCKET'],
  });
}

/** Starts the worker that is deployed together with the files of a build. */
export async function startCloudflareAssets(dist: string): Promise<LocalHost & Logged> {
  const { assets, compatibility_date } = configurationOf('assets');
  if (assets?.directory !== 'dist') throw new Error('wrangler.jsonc does not deploy the folder that builds go to');
  return run(bundle('assets', ['--assets', dist]), {
    compatibilityDate: compatibility_date,
    // The values that wrangler derives from its configuration.
    assets: {
      directory: dist,
      binding: assets.binding,
      routerConfig: { has_user_worker: true, invoke_user_worker_ahead_of_assets: assets.run_worker_first },
      assetConfig: { html_handling: assets.html_handling, not_found_handling: assets.not_found_handling },
    },
  });
}

async function run(script: string, options: object): Promise<CloudflareHost> {
  const { Miniflare } = (await import('miniflare' as string)) as { readonly Miniflare: MiniflareClass };
  const log: string[] = [];
  const miniflare = new Miniflare({
    modules: true,
    scriptPath: script,
    // Must be the folder of the script: workerd ends if a module's path is outside of `modulesRoot`.
    modulesRoot: dirname(script),
    // Prevents Miniflare from requesting data about this machine from Cloudflare.
    cf: false,
    host: '127.0.0.1',
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const stream of [stdout, stderr]) stream.setEncoding('utf8').on('data', (text: string) => log.push(text));
    },
    ...options,
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
      const left = filesBelow(dist);
      const putAll = async () => {
        for (let path = left.pop(); path !== undefined; path = left.pop())
          await bucket.put(prefix + path, Uint8Array.from(readFileSync(join(dist, path))));
      };
      await Promise.all(Array.from({ length: 8 }, putAll));
    },
    remove: async (keys) => (await miniflare.getR2Bucket('BUCKET')).delete([...keys]),
    log: () => log.join(''),
    close: () => miniflare.dispose(),
  };
}
