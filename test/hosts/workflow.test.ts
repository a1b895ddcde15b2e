/**
 * Runs the scripts of .github/workflows/mirror.yml in order, in a copy of the project. Also runs the cron script of
 * docs/ci.md and the build command for Netlify. Blocks come from a mirror on this machine, and files go to an S3 server on
 * this machine. test/project/workflow.test.ts checks the text of the workflow: its conditions, caches and actions.
 */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createMirrorServer } from '../../src/serve/local/server.ts';
import { filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { type Finished, finished, ROOT } from '../support/cli.ts';
import type { FakeBlock } from '../support/fakeNode.ts';
import { writeChain } from '../support/nodeRows.ts';
import { extended } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';
import { ACCESS_KEY, BUCKET, type S3Server, startS3 } from './s3Server.ts';

interface Step {
  readonly env?: Readonly<Record<string, string>>;
  readonly run?: string;
}

const STEPS = (
  parse(readFileSync(join(ROOT, '.github/workflows/mirror.yml'), 'utf8')) as {
    readonly jobs: { readonly mirror: { readonly steps: readonly Step[] } };
  }
).jobs.mirror.steps;

const MANIFEST = 'runes/v1/manifest.json';

const work = temporaryFolder();
const workspace = join(work, 'workspace');
const dist = join(workspace, 'dist');
let s3: S3Server;
let source: Source;

/**
 * Runs the scripts of a run of the workflow up to the first that fails. `more` has values of expressions in which this
 * run differs. An expression without a value is an error, so a changed expression needs a changed test.
 */
async function runWorkflow(
  more: Readonly<Record<string, string>> = {},
): Promise<{ scripts: (Finished & { script: string })[]; output: string }> {
  const values: Readonly<Record<string, string>> = {
    'vars.PULL_FROM': source.url,
    "vars.PULL_BLOCKS || '-1008..'": '0..',
    'vars.SITE_URL': '',
    'inputs.confirmations': '',
    'secrets.RUNE_MIRROR_KEY': '',
    'vars.BUCKET': BUCKET,
    "inputs.compare && 'all' || ''": '',
    "vars.S3_PROVIDER || 'Cloudflare'": 'Other',
    'vars.S3_ENDPOINT': `http://127.0.0.1:${s3.port}`,
    "vars.S3_REGION || 'auto'": 'auto',
    'secrets.S3_ACCESS_KEY_ID': ACCESS_KEY.id,
    'secrets.S3_SECRET_ACCESS_KEY': ACCESS_KEY.secret,
    ...more,
  };
  const fill = (text: string) =>
    String(text).replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => {
      const value = values[expression];
      if (value === undefined) throw new Error(`this test has no value for ${expression}`);
      return value;
    });
  const scripts: (Finished & { script: string })[] = [];
  for (const { run: script, env = {} } of STEPS) {
    if (script === undefined || script.startsWith('npm ci ')) continue;
    const file = join(work, 'step.sh');
    writeFileSync(file, script);
    const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]));
    // Same flags as `shell: bash` of a workflow.
    const ended = await run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', file], {
      CI: 'true',
      GITHUB_ACTIONS: 'true',
      ...filled,
    });
    scripts.push({ script, ...ended });
    if (ended.code !== 0) break;
  }
  const output = scripts.map(({ stdout, stderr }) => stdout + stderr).join('');
  expect(output).not.toContain(ACCESS_KEY.secret);
  return { scripts, output };
}

/** Copies the files of a clone, and uncommitted ones, without tests, because no step reads them. */
function checkOut(): void {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of listed.split('\0')) {
    if (path === '' || /^(?:test|input\/pulled)\//.test(path) || statSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile() !== true)
      continue;
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    copyFileSync(join(ROOT, path), join(workspace, path));
  }
  symlinkSync(join(ROOT, 'node_modules'), join(workspace, 'node_modules'));
}

/** Runs a command in the workspace, without the environment variables of the tests. */
function run([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
  const options = { cwd: workspace, env: { PATH: process.env['PATH'], HOME: work, ...FAST, ...env } };
  return finished(spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }));
}

/**
 * Settings for tests: uploads fail without retries, and old files of an archive are removed immediately instead of
 * after a day.
 */
const FAST = { RCLONE_RETRIES: '1', RCLONE_LOW_LEVEL_RETRIES: '1', RCLONE_TRANSFERS: '1', UPLOAD_GRACE_SECONDS: '0' };

const random = integersFor('the chain of the workflow');

/** A mirror that publishes rows. */
class Source {
  readonly requests: string[] = [];
  /** Status of every answer, or undefined for the true answers. */
  status: number | undefined;
  url = '';
  #chain: FakeBlock[] = [];
  readonly #folder = join(work, 'source');
  readonly #input = join(work, 'chain');
  #server: Server | undefined;

  async start(): Promise<void> {
    const mirror = createMirrorServer(this.#folder);
    this.#server = createServer((request, response) => {
      this.requests.push(request.url ?? '');
      if (this.status !== undefined) response.writeHead(this.status, { 'retry-after': '3600' }).end();
      else mirror.emit('request', request, response);
    });
    await new Promise<void>((resolve) => this.#server?.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  /** Replaces all blocks from a height on by `count` new ones, and builds the mirror. */
  async set(from: number, count: number): Promise<void> {
    this.#chain = extended(this.#chain.slice(0, from), count, random, 6);
    writeChain(this.#chain, this.#input);
    await testBuild(this.#folder, { inputs: [this.#input], parquet: true });
    this.requests.length = 0;
  }

  /** Builds the chain as the workflow does. Returns the output folder. */
  async expected(): Promise<string> {
    const out = join(temporaryFolder(), 'expected');
    await testBuild(out, { inputs: [this.#input], layout: 'archive', dialect: 'hiro', lists: true, parquet: true });
    return out;
  }
}

beforeAll(async () => {
  execFileSync('rclone', ['version'], { stdio: 'ignore' });
  checkOut();
  s3 = await startS3();
  source = new Source();
  await source.set(0, 10);
  await source.start();
});
afterAll(async () => {
  source?.close();
  await s3?.close();
});
beforeEach(() => {
  source.status = undefined;
  s3.requests.length = 0;
  source.requests.length = 0;
});

/**
 * Checks that the bucket has exactly the files of the build, and that these equal a build of the source's blocks.
 */
async function expectMirror(): Promise<void> {
  const expected = await source.expected();
  const published = (folder: string) => filesBelow(folder).filter((path) => !path.startsWith('.'));
  expect(published(dist)).toEqual(published(expected));
  for (const path of published(dist).filter((name) => name !== MANIFEST))
    expect(readFileSync(join(dist, path)).equals(readFileSync(join(expected, path))), path).toBe(true);
  const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as object;
  expect(manifestIn(dist)).toEqual(manifestIn(expected));
  expect([...bytesInBucket().keys()].sort()).toEqual(published(dist));
  const wrong = published(dist).filter((path) => !readFileSync(join(dist, path)).equals(s3.objects.get(path)?.bytes ?? Buffer.alloc(0)));
  expect(wrong).toEqual([]);
}

/** File that an upload stores in the bucket before the files of the build. */
const NUMBER = '.rune-activity-mirror.upload';
const sent = () => s3.requests.filter((line) => line.startsWith('PUT ') && !line.endsWith(NUMBER)).map((line) => line.slice(4));
const bytesInBucket = () => new Map([...s3.objects].filter(([key]) => !key.endsWith(NUMBER)).map(([key, { bytes }]) => [key, bytes]));
/** Returns the lowest height of the files of rows that were requested. */
const fetchedFrom = () =>
  Math.min(...source.requests.flatMap((url) => /\/rows\/([0-9]+)-[0-9]+-[0-9a-f]+\.parquet$/.exec(url)?.[1] ?? []).map(Number));

async function runWell(more?: Readonly<Record<string, string>>): Promise<string> {
  const { scripts, output } = await runWorkflow(more);
  expect(
    scripts.map(({ code }) => code),
    output,
  ).toEqual([0, 0, 0, 0, 0]);
  return output;
}

describe.sequential('the scripts of the workflow', () => {
  it('fill an empty bucket', async () => {
    await runWell();
    await expectMirror();
  });

  it('fetch new and replaced blocks, and send only what changed', async () => {
    const before = bytesInBucket();
    await source.set(9, 2);
    expect(await runWell()).not.toContain('compared with the bucket');
    expect(fetchedFrom()).toBeGreaterThanOrEqual(9);
    const differing = [...bytesInBucket()].filter(([key, bytes]) => before.get(key)?.equals(bytes) !== true).map(([key]) => key);
    expect(sent().sort()).toEqual(differing.sort());
    await expectMirror();
  });

  it('end if the source does not answer', async () => {
    source.status = 503;
    const { scripts } = await runWorkflow();
    expect(scripts.at(-1)).toMatchObject({ code: 3, script: expect.stringContaining('npm run pull') });
    expect(s3.requests).toEqual([]);
  });

  it('fetch a deeper reorganisation, and compare with the bucket, only on request', async () => {
    await source.set(3, 9);
    const { scripts } = await runWorkflow();
    expect(scripts.at(-1)).toMatchObject({ code: 2, stderr: expect.stringContaining('--confirmations') });
    s3.objects.delete('index.html');
    const output = await runWell({ 'inputs.confirmations': '10', "inputs.compare && 'all' || ''": 'all' });
    expect(output).toContain('compared with the bucket');
    await expectMirror();
  });
});

describe('the script for cron in docs/ci.md', () => {
  it('does the same, and a second run that starts meanwhile does nothing', async () => {
    const [, documented = ''] = /```sh\n(#!\/bin\/sh\n[\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/ci.md'), 'utf8')) ?? [];
    const file = join(work, 'update.sh');
    writeFileSync(file, documented.replace('/srv/rune-activity-mirror', workspace));
    const settings = { source: source.url, blocks: '0..', layout: 'archive', dialect: 'hiro', upload: `r2:${BUCKET}` };
    writeFileSync(join(workspace, 'rune-mirror.json'), JSON.stringify(settings));
    const env = {
      RCLONE_CONFIG_R2_TYPE: 's3',
      RCLONE_CONFIG_R2_PROVIDER: 'Other',
      RCLONE_CONFIG_R2_ENDPOINT: `http://127.0.0.1:${s3.port}`,
      RCLONE_CONFIG_R2_ACCESS_KEY_ID: ACCESS_KEY.id,
      RCLONE_CONFIG_R2_SECRET_ACCESS_KEY: ACCESS_KEY.secret,
    };
    await source.set(11, 2);
    const runs = await Promise.all([run(['sh', file], env), run(['sh', file], env)]);
    expect(
      runs.map(({ code }) => code),
      runs.map(({ stderr }) => stderr).join(),
    ).toEqual([0, 0]);
    expect(runs.filter(({ stdout }) => stdout === '').length).toBe(1);
    await expectMirror();
    source.status = 503;
    expect((await run(['sh', file], env)).code).toBe(3);
    await expectMirror();
  });
});

describe('the build command for Netlify', () => {
  const commandOf = (recipe: string) => /^ *command = "(npm run build .*)"$/m.exec(readFileSync(join(ROOT, recipe), 'utf8'))?.[1] ?? '';

  it.each([
    ['netlify.toml', undefined, 'files', 'hiro'],
    ['docs/ci.md', '0x', 'archive', 'contract'],
  ])('of %s follows the settings: dialect %s, layout %s', async (recipe, dialect, layout, expected) => {
    const settings = join(workspace, 'rune-mirror.json');
    for (const path of [dist, join(workspace, '.cache'), settings]) rmSync(path, { recursive: true, force: true });
    if (dialect !== undefined) writeFileSync(settings, JSON.stringify({ dialect, layout }));
    const built = await run(['bash', '-c', commandOf(recipe)], {});
    expect(built.code, built.stderr).toBe(0);
    expect(JSON.parse(readFileSync(join(dist, MANIFEST), 'utf8'))).toMatchObject({ dialect: expected, layout });
  });
});
