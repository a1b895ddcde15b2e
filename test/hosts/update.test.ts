/**
 * Runs `update` as the workflow of GitHub Actions and the script for cron in docs/run-a-mirror.md do, with the real rclone. Blocks come
 * from a mirror on this machine, and files go to an S3 server on this machine. Also builds as Netlify does. test/project/workflows.test.ts
 * checks the text of the workflow.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createMirrorServer } from '../../src/serve/local/server.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { endOf, type Finished, finished, ROOT, RUNNER, runProcess, saidBy } from '../support/cli.ts';
import { type FakeBlock, FakeNode } from '../support/fakeNode.ts';
import { writeChain } from '../support/nodeRows.ts';
import { blockBelow } from '../support/pages.ts';
import { freePort } from '../support/ports.ts';
import { extended } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';
import { type Listening, listening, sendTo } from '../support/server.ts';
import { until } from '../support/until.ts';
import { ACCESS_KEY, BUCKET, type S3Server, startS3 } from './s3Server.ts';

const MANIFEST = 'runes/v1/manifest.json';

const work = temporaryFolder();
const workspace = join(work, 'workspace');
const dist = join(workspace, 'dist');
let s3: S3Server;
let source: Source;
let host: Listening;

const random = integersFor('the chain of the workflow');

const script = (name: string) => `'${process.execPath}' '${RUNNER}' ${name}`;
/** A package.json with the scripts that the documents call. */
const PACKAGE = JSON.stringify({ scripts: { update: script('update'), build: script('build') } });

/** A mirror that publishes rows. */
class Source {
  /** Status of every answer, or undefined for the true answers. */
  status: number | undefined;
  #chain: FakeBlock[] = [];
  readonly #folder = join(work, 'source');
  readonly #input = join(work, 'chain');

  /** Starts the server of the mirror. */
  start(): Promise<Listening> {
    const mirror = createMirrorServer(this.#folder);
    const server = createServer((request, response) => {
      if (this.status !== undefined) response.writeHead(this.status, { 'retry-after': '3600' }).end();
      else mirror.emit('request', request, response);
    });
    return listening(server);
  }

  /** Replaces all blocks from a height on by `count` new ones, and builds the mirror. */
  async set(from: number, count: number): Promise<void> {
    this.#chain = extended(this.#chain.slice(0, from), count, random, 6);
    writeChain(this.#chain, this.#input);
    await testBuild(this.#folder, { inputs: [this.#input], parquet: true });
  }

  /** Builds the chain as the settings say. Returns the output folder. */
  async expected(): Promise<string> {
    const out = join(temporaryFolder(), 'expected');
    await testBuild(out, { inputs: [this.#input], layout: 'archive', dialect: 'hiro', lists: true, parquet: true });
    return out;
  }
}

beforeAll(async () => {
  execFileSync('rclone', ['version'], { stdio: 'ignore' });
  s3 = await startS3();
  source = new Source();
  await source.set(0, 10);
  host = await source.start();
  writeFiles(workspace, { 'package.json': PACKAGE });
  const made = await runProcess('init', ['--from', host.url, '--blocks', '0..', '--upload', `mirror:${BUCKET}`], workspace);
  expect(made).toMatchObject({ code: 0, stderr: '' });
});
afterAll(async () => {
  await host?.close();
  await s3?.close();
});
beforeEach(() => {
  source.status = undefined;
});

/** Runs a script in a folder, without the environment variables of the tests. */
const shell = (script: string, cwd?: string): Promise<Finished> => finished(startShell(script, cwd));

function startShell(script: string, cwd = workspace): ChildProcess {
  const file = join(work, 'script.sh');
  writeFileSync(file, script);
  const env = {
    ...{ PATH: process.env['PATH'], HOME: work, RCLONE_RETRIES: '1', RCLONE_LOW_LEVEL_RETRIES: '1', RCLONE_TRANSFERS: '1' },
    RCLONE_CONFIG_MIRROR_TYPE: 's3',
    RCLONE_CONFIG_MIRROR_PROVIDER: 'Other',
    RCLONE_CONFIG_MIRROR_ENDPOINT: `http://127.0.0.1:${s3.port}`,
    RCLONE_CONFIG_MIRROR_ACCESS_KEY_ID: ACCESS_KEY.id,
    RCLONE_CONFIG_MIRROR_SECRET_ACCESS_KEY: ACCESS_KEY.secret,
  };
  return spawn('sh', ['-e', file], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Checks that the output equals a build of the source's blocks, and that the bucket has its files. */
async function expectMirror(): Promise<void> {
  const expected = await source.expected();
  const published = (folder: string) => filesBelow(folder).filter((path) => !path.startsWith('.'));
  expect(published(dist)).toEqual(published(expected));
  for (const path of published(dist).filter((name) => name !== MANIFEST))
    expect(readFileSync(join(dist, path)).equals(readFileSync(join(expected, path))), path).toBe(true);
  const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as object;
  expect(manifestIn(dist)).toEqual(manifestIn(expected));
  const wrong = published(dist).filter((path) => !readFileSync(join(dist, path)).equals(s3.objects.get(path)?.bytes ?? Buffer.alloc(0)));
  expect(wrong).toEqual([]);
}

it('fills an empty bucket, sends new and replaced blocks, and leaves the bucket alone if the source does not answer', async () => {
  for (const [from, count] of [[10, 0] as const, [9, 2] as const]) {
    await source.set(from, count);
    const updated = await shell('npm run -s update');
    expect([updated.code, updated.stderr.includes(ACCESS_KEY.secret)], updated.stderr).toEqual([0, false]);
    await expectMirror();
  }
  source.status = 503;
  s3.requests.length = 0;
  expect((await shell('npm run -s update')).code).toBe(3);
  expect(s3.requests).toEqual([]);
});

it('is run by the script for cron in docs/run-a-mirror.md, of which a second run that starts meanwhile does nothing', async () => {
  const script = blockBelow('docs/run-a-mirror.md', 'With cron', 'sh').replace('/srv/rune-activity-mirror', workspace);
  await source.set(11, 2);
  const runs = await Promise.all([shell(script), shell(script)]);
  expect(
    runs.map(({ code }) => code),
    runs.map(({ stderr }) => stderr).join(),
  ).toEqual([0, 0]);
  expect(runs.filter(({ stdout }) => stdout === '').length).toBe(1);
  await expectMirror();
});

it('follows a node, also if a block comes during an upload, which begins again and does not count as failed', async () => {
  const chain = extended([], 8, random, 6);
  const node = await FakeNode.start(chain.slice(0, 6), { network: 'regtest' });
  const folder = temporaryFolder();
  const settings = { pull: { from: `core:${node.url}` }, build: { layout: 'archive' }, update: { upload: `mirror:${BUCKET}/followed` } };
  writeFiles(folder, { 'rune-mirror.json': JSON.stringify(settings) });
  const metrics = await freePort();
  const child = startShell(`exec ${script('update')} --follow --metrics ${metrics}`, folder);
  const said = saidBy(child);
  try {
    s3.intercept = async (method) => {
      if (method !== 'PUT' || said.stdout.includes('2 blocks to 7: ')) return undefined;
      node.replace(chain);
      await until(() => said.stdout.includes('2 blocks to 7: '), child);
      return undefined;
    };
    await until(() => said.stdout.includes('Uploaded in '), child);
    expect(said).toMatchObject({ stdout: expect.stringContaining('A build changed the files during the upload'), stderr: '' });
    expect((await sendTo(metrics)('GET', '/metrics')).body).toContain('rune_mirror_failures_total{step="upload"} 0\n');
    const sent = s3.objects.get(`followed/${MANIFEST}`)?.bytes.toString() ?? '';
    expect(JSON.parse(sent)).toMatchObject({ tip: { height: 7 } });
  } finally {
    child.kill('SIGTERM');
    await endOf(child);
    s3.intercept = () => Promise.resolve(undefined);
    await node.close();
  }
});

it.each([
  ['netlify.toml', undefined, 'files', 'hiro'],
  ['docs/run-a-mirror.md', '0x', 'archive', 'contract'],
])('the build command for Netlify of %s follows the settings: dialect %s, layout %s', async (recipe, dialect, layout, expected) => {
  const [, command = ''] = /^ *command = "(npm run build .*)"$/m.exec(readFileSync(join(ROOT, recipe), 'utf8')) ?? [];
  const folder = temporaryFolder();
  writeChain(extended([], 12, random, 6), join(folder, 'input/pulled'));
  const settings = dialect === undefined ? {} : { 'rune-mirror.json': JSON.stringify({ build: { dialect, layout } }) };
  writeFiles(folder, { 'package.json': PACKAGE, ...settings });
  expect(await shell(command, folder)).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(readFileSync(join(folder, 'dist', MANIFEST), 'utf8'))).toMatchObject({ dialect: expected, layout });
});
