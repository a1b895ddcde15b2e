/**
 * Runs .github/workflows/mirror.yml: its steps in order, each script in bash as on GitHub's runner. Every run has a
 * fresh copy of the project, and only the archives of the cache pass from one run to the next. Also runs the cron
 * script of docs/ci.md. Blocks come from a mirror on this machine, and files go to an S3 server on this machine. Only
 * GitHub's own actions and `npm ci` are simulated.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createMirrorServer } from '../../src/serve/local/server.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { type Finished, ROOT } from '../support/cli.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { ACCESS_KEY, BUCKET, type S3Server, startS3 } from './s3Server.ts';

interface Step {
  readonly id?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string | number | boolean>>;
  readonly env?: Readonly<Record<string, string | number | boolean>>;
  readonly run?: string;
}

const JOB = (
  parse(readFileSync(join(ROOT, '.github/workflows/mirror.yml'), 'utf8')) as {
    readonly jobs: { readonly mirror: { readonly if: string; readonly steps: readonly Step[] } };
  }
).jobs.mirror;

const API_KEY = 'key-of-the-source';
/** The mirror has this many of the newest blocks. */
const WINDOW = 8;
const MANIFEST = 'runes/v1/manifest.json';

const work = temporaryFolder();
/** Working folder of every run. Like on GitHub's machines, the path is always the same. */
const workspace = join(work, 'workspace');
const dist = join(workspace, 'dist');
/** Folder for the files of GitHub Pages. */
const pagesArtifact = join(work, 'pages');
let s3: S3Server;
let source: Source;

// Expressions ---------------------------------------------------------------------------------------------------------------------------------

type Value = string | number | boolean | null;
interface Contexts {
  readonly [name: string]: Value | Contexts;
}
const TOKEN = /\s*(?:('(?:[^']|'')*')|(\d+)|([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(\|\||&&|==|!=|[()]))/y;

/**
 * Evaluates an expression of GitHub Actions. Supports only what the workflow uses. A missing value is null, as on
 * GitHub.
 */
function evaluate(expression: string, contexts: Contexts): Value {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < expression.trimEnd().length) {
    const match = TOKEN.exec(expression);
    if (match === null) throw new Error(`${expression} is not understood`);
    tokens.push(match[0].trim());
  }
  const next = () => tokens.shift() ?? '';
  const primary = (): Value => {
    const token = next();
    if (token === '(') {
      const value = or();
      if (next() !== ')') throw new Error(`${expression} lacks a parenthesis`);
      return value;
    }
    if (token.startsWith("'")) return token.slice(1, -1).replaceAll("''", "'");
    if (/^\d+$/.test(token)) return Number(token);
    if (token === 'always') {
      if (next() + next() !== '()') throw new Error(`${expression}: always has no arguments`);
      return true;
    }
    let at: Value | Contexts | undefined = contexts;
    for (const name of token.split('.')) {
      if (at === contexts && !(name in contexts)) throw new Error(`${expression}: there is no context ${name}`);
      at = typeof at === 'object' && at !== null ? at[name] : undefined;
    }
    if (typeof at === 'object' && at !== null) throw new Error(`${expression}: ${token} is no value`);
    return at ?? null;
  };
  const text = (value: Value) => String(value ?? '');
  const equal = (): Value => {
    const left = primary();
    if (tokens[0] !== '==' && tokens[0] !== '!=') return left;
    return (next() === '==') === (text(left) === text(primary()));
  };
  // Evaluates both sides even if the left one decides. That is harmless, because expressions have no side effects.
  const and = (): Value => {
    let left = equal();
    while (tokens[0] === '&&') {
      next();
      const right = equal();
      left = left ? right : left;
    }
    return left;
  };
  const or = (): Value => {
    let left = and();
    while (tokens[0] === '||') {
      next();
      const right = and();
      left = left ? left : right;
    }
    return left;
  };
  const value = or();
  if (tokens.length > 0) throw new Error(`${expression} does not end at ${tokens[0]}`);
  return value;
}

const fill = (text: unknown, contexts: Contexts): string =>
  String(text ?? '').replace(/\$\{\{(.*?)\}\}/g, (_, expression: string) => String(evaluate(expression, contexts) ?? ''));

// The runner ----------------------------------------------------------------------------------------------------------------------------------

/** Entries of the cache by key, in the order of their creation. An entry is an archive like those of actions/cache. */
const cache = new Map<string, string>();
let runNumber = 0;

interface RunOptions {
  readonly inputs?: Contexts;
  readonly vars?: Contexts;
  readonly attempt?: number;
  /**
   * Text in the script of the last step before the machine dies. No later step runs, not even those that save caches.
   */
  readonly diesAfter?: string;
}

interface Run {
  readonly isGood: boolean;
  /** Scripts that ran, in order, with their results. */
  readonly scripts: readonly (Finished & { readonly script: string })[];
  readonly output: string;
}

async function runWorkflow({ inputs = {}, vars = {}, attempt = 1, diesAfter }: RunOptions = {}): Promise<Run> {
  if (attempt === 1) runNumber += 1;
  const steps: Record<string, Contexts> = {};
  const contexts: Contexts = {
    github: { run_number: runNumber, run_id: 1_000_000 + runNumber, run_attempt: attempt },
    inputs,
    steps,
    vars: {
      PULL_FROM: source.url,
      PULL_BLOCKS: `-${WINDOW}..`,
      BUCKET,
      S3_PROVIDER: 'Other',
      S3_ENDPOINT: `http://127.0.0.1:${s3.port}`,
      ...vars,
    },
    secrets: { PULL_HEADERS: `x-api-key: ${API_KEY}`, S3_ACCESS_KEY_ID: ACCESS_KEY.id, S3_SECRET_ACCESS_KEY: ACCESS_KEY.secret },
  };
  const scripts: (Finished & { script: string })[] = [];
  let isGood = true;
  if (!evaluate(JOB.if, contexts)) return { isGood, scripts, output: '' };
  if (existsSync(workspace)) renameSync(workspace, `${workspace}-${runNumber}-${attempt}`);

  for (const step of JOB.steps) {
    const wanted = step.if ?? 'true';
    const isWanted = wanted === 'true' ? isGood : (isGood || wanted.includes('always()')) && Boolean(evaluate(wanted, contexts));
    let [outcome, outputs]: [string, Contexts] = ['skipped', {}];
    if (isWanted && step.uses !== undefined) {
      outputs = act(step, contexts);
      outcome = 'success';
    } else if (isWanted && step.run !== undefined) {
      const env = Object.fromEntries(Object.entries(step.env ?? {}).map(([name, value]) => [name, fill(value, contexts)]));
      const finished = await runScript(step.run, { ...env, GITHUB_RUN_NUMBER: `${runNumber}`, GITHUB_RUN_ATTEMPT: `${attempt}` });
      scripts.push({ script: step.run, ...finished });
      outcome = finished.code === 0 ? 'success' : 'failure';
      isGood &&= finished.code === 0;
    }
    if (step.id !== undefined) steps[step.id] = { outcome, outputs };
    if (diesAfter !== undefined && step.run?.includes(diesAfter) === true) break;
  }
  const output = scripts.map(({ stdout, stderr }) => stdout + stderr).join('');
  for (const secret of [API_KEY, ACCESS_KEY.secret]) expect(output).not.toContain(secret);
  return { isGood, scripts, output };
}

/** Simulates one of GitHub's actions. Returns its outputs. */
function act(step: Step, contexts: Contexts): Contexts {
  const given = (name: string) => fill(step.with?.[name], contexts);
  const key = given('key');
  switch (step.uses?.replace(/@.*/, '')) {
    case 'actions/checkout':
      for (const path of projectFiles()) {
        mkdirSync(dirname(join(workspace, path)), { recursive: true });
        copyFileSync(join(ROOT, path), join(workspace, path));
      }
      return {};
    case 'actions/setup-node':
      return {};
    case 'actions/cache/restore': {
      const prefixes = given('restore-keys').split('\n').filter(Boolean);
      const matched = cache.has(key) ? key : [...cache.keys()].reverse().find((k) => prefixes.some((prefix) => k.startsWith(prefix)));
      if (matched === undefined) return {};
      execFileSync('tar', ['-xf', cache.get(matched) ?? '', '-P', '-C', workspace]);
      return {};
    }
    case 'actions/cache/save': {
      const paths = given('path')
        .split('\n')
        .filter((path) => path !== '' && existsSync(join(workspace, path)));
      // GitHub's action only warns if no path exists or if the cache already has the key. So the step does not fail.
      if (paths.length === 0 || cache.has(key)) return {};
      pack(key, paths);
      return {};
    }
    case 'actions/upload-pages-artifact':
      // Omits files whose names begin with a dot, like GitHub's action.
      rmSync(pagesArtifact, { recursive: true, force: true });
      cpSync(join(workspace, given('path')), pagesArtifact, { recursive: true, filter: (path) => !basename(path).startsWith('.') });
      return {};
    default:
      throw new Error(`${step.uses} is not known here`);
  }
}

/** Writes an archive like actions/cache. File times keep fractions of seconds, which hosting/upload.sh compares. */
function pack(key: string, paths: readonly string[]): void {
  const archive = join(work, `${cache.size}-${key}.tar`);
  execFileSync('tar', ['--posix', '-cf', archive, '-P', '-C', workspace, ...paths]);
  cache.set(key, archive);
}

/**
 * Lists the files of the project: those of a clone, and uncommitted ones. Omits tests, because no step reads them.
 * Omits folders and links to folders, which are never part of the project.
 */
const projectFiles = (): string[] =>
  execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
    .split('\0')
    .filter(
      (path) => path !== '' && !/^(?:test|input\/pulled)\//.test(path) && statSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile(),
    );

function runScript(script: string, env: Readonly<Record<string, string>>): Promise<Finished> {
  if (script.startsWith('npm ci ')) {
    symlinkSync(join(ROOT, 'node_modules'), join(workspace, 'node_modules'));
    return Promise.resolve({ code: 0, stdout: '', stderr: '' });
  }
  const file = join(work, 'step.sh');
  writeFileSync(file, script);
  // Same flags as `shell: bash` of a workflow.
  return run(['bash', '--noprofile', '--norc', '-eo', 'pipefail', file], { CI: 'true', GITHUB_ACTIONS: 'true', ...env });
}

/** Runs a command in the workspace, without the environment variables of the tests. */
function run([command = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
  const child = spawn(command, args, {
    cwd: workspace,
    env: { PATH: process.env['PATH'], HOME: work, ...FAST, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text.stdout += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    text.stderr += part;
  });
  return new Promise((resolve, reject) => child.on('error', reject).on('close', (code) => resolve({ code, ...text })));
}

/**
 * Settings for tests: uploads fail without retries, and old files of an archive are removed immediately instead of
 * after a day.
 */
const FAST = { RCLONE_RETRIES: '1', RCLONE_LOW_LEVEL_RETRIES: '1', RCLONE_TRANSFERS: '1', UPLOAD_GRACE_SECONDS: '0' };

// The source ----------------------------------------------------------------------------------------------------------------------------------

/** A mirror that requires a key. `chain` maps heights to forks, and tests change it. */
class Source {
  readonly requests: string[] = [];
  chain = new Map<number, string>();
  /** Status of every answer, or undefined for the true answers. */
  status: number | undefined;
  url = '';
  readonly #folder = join(work, 'source');
  #server: Server | undefined;

  async start(): Promise<void> {
    const mirror = createMirrorServer(this.#folder);
    this.#server = createServer((request, response) => {
      this.requests.push(request.url ?? '');
      if (request.headers['x-api-key'] !== API_KEY) response.writeHead(401).end();
      else if (this.status !== undefined) response.writeHead(this.status, { 'retry-after': '3600' }).end();
      else mirror.emit('request', request, response);
    });
    await new Promise<void>((resolve) => this.#server?.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  /**
   * Sets blocks, each given as height and fork such as `107b`, and builds the mirror. Removes all blocks above the last
   * one.
   */
  async set(...blocks: readonly string[]): Promise<void> {
    for (const block of blocks) this.chain.set(Number.parseInt(block, 10), block);
    const last = Number.parseInt(blocks.at(-1) ?? '', 10);
    for (const height of this.chain.keys()) if (height > last) this.chain.delete(height);
    await testBuild(this.#folder, { inputs: [this.#write()] });
    this.requests.length = 0;
  }

  /** Builds the newest blocks of the chain. Returns the output folder. */
  async expected(): Promise<string> {
    const out = join(work, `expected-${runNumber}-${[...this.chain.values()].at(-1)}`);
    const last = Math.max(...this.chain.keys());
    await testBuild(out, {
      inputs: [this.#write()],
      layout: 'archive',
      dialect: 'hiro',
      lists: true,
      blocks: { from: last - WINDOW + 1, to: last },
    });
    return out;
  }

  #write(): string {
    const folder = join(work, 'chain');
    rmSync(folder, { recursive: true, force: true });
    writeFiles(folder, Object.fromEntries([...this.chain.values()].map((block) => [`${block}.ndjson`, ndjson(recordsOf(block))])));
    return folder;
  }
}

const recordsOf = (block: string) =>
  Array.from({ length: 12 }, (_, tx) =>
    Array.from({ length: tx === 3 ? 30 : 2 }, (_, i) =>
      record(Number.parseInt(block, 10), tx, {
        amount: `${i}`,
        location: { block_hash: hex(`block ${block}`), tx_id: hex(`tx ${block} ${tx}`) },
      }),
    ),
  ).flat();

// The tests -----------------------------------------------------------------------------------------------------------------------------------

beforeAll(async () => {
  execFileSync('rclone', ['version'], { stdio: 'ignore' });
  s3 = await startS3();
  source = new Source();
  await source.set('100a', '101a', '102a', '103a', '104a', '105a', '106a', '107a', '108a', '109a');
  await source.start();
});
afterAll(async () => {
  source?.close();
  await s3?.close();
});
beforeEach(() => {
  s3.intercept = () => Promise.resolve(undefined);
  source.status = undefined;
  s3.requests.length = 0;
  source.requests.length = 0;
});

/**
 * Checks that the bucket has exactly the files of the build, and that these equal a build of the source's last blocks.
 */
async function expectMirror(): Promise<void> {
  const expected = await source.expected();
  const published = (folder: string) => filesBelow(folder).filter((path) => !path.startsWith('.'));
  expect(published(dist)).toEqual(published(expected));
  for (const path of published(dist).filter((name) => name !== MANIFEST))
    expect(readFileSync(join(dist, path)).equals(readFileSync(join(expected, path))), path).toBe(true);
  // Omits `sources`: only a build from a pull knows where its blocks come from.
  const { sources, ...manifest } = JSON.parse(readFileSync(join(dist, MANIFEST), 'utf8')) as Record<string, unknown>;
  expect(manifest).toEqual(JSON.parse(readFileSync(join(expected, MANIFEST), 'utf8')));
  expect(sources).toMatchObject([{ rules: 'server' }]);
  expect([...bytesInBucket().keys()].sort()).toEqual(published(dist));
  const wrong = published(dist).filter((path) => !readFileSync(join(dist, path)).equals(s3.objects.get(path)?.bytes ?? Buffer.alloc(0)));
  expect(wrong).toEqual([]);
}

async function runWell(options?: RunOptions): Promise<Run> {
  const run = await runWorkflow(options);
  expect(run.isGood, run.output).toBe(true);
  return run;
}

/** File that an upload stores in the bucket before the files of the build. */
const NUMBER = '.rune-activity-mirror.upload';
const sent = () => s3.requests.filter((line) => line.startsWith('PUT ') && !line.endsWith(NUMBER)).map((line) => line.slice(4));
const removed = () => s3.requests.filter((line) => line.startsWith('DELETE ')).map((line) => line.slice(7));
const bytesInBucket = () => new Map([...s3.objects].filter(([key]) => !key.endsWith(NUMBER)).map(([key, { bytes }]) => [key, bytes]));
/** Checks that the upload sent exactly the changed files and removed exactly the missing ones, each once. */
function expectOnlyChanges(before: ReadonlyMap<string, Buffer>): void {
  const now = bytesInBucket();
  const differing = [...now].filter(([key, bytes]) => before.get(key)?.equals(bytes) !== true).map(([key]) => key);
  expect(sent().sort()).toEqual(differing.sort());
  expect(removed().sort()).toEqual([...before.keys()].filter((key) => !now.has(key)).sort());
}
/** Returns the heights of blocks whose records were requested. */
const fetched = () => [...new Set(source.requests.flatMap((url) => /\/blocks\/([0-9]+)[./]/.exec(url)?.[1] ?? []))].map(Number).sort();

describe.sequential('the workflow', () => {
  it('does nothing without a source, as in a fork', async () => {
    const run = await runWorkflow({ vars: { PULL_FROM: '' } });
    expect(run.scripts).toEqual([]);
  });

  it('fills an empty bucket with the last blocks, without the sample', async () => {
    const run = await runWell();
    expect(existsSync(join(workspace, 'input/README.md'))).toBe(true);
    expect(run.scripts.length).toBe(JOB.steps.filter((step) => step.run !== undefined).length);
    expect(fetched()).toEqual([102, 103, 104, 105, 106, 107, 108, 109]);
    expect([...cache.keys()]).toEqual([`mirror-${runNumber}-${1_000_000 + runNumber}-1`]);
    await expectMirror();
  });

  it('sends and fetches nothing if nothing is new', async () => {
    const run = await runWell();
    expect(fetched()).toEqual([]);
    expect([...sent(), ...removed()]).toEqual([]);
    expect(run.output).toContain('0 files sent, 0 removed');
    await expectMirror();
  });

  it('fetches a new block and sends its changes, and removes the block that leaves the window', async () => {
    const before = bytesInBucket();
    await source.set('110a');
    const run = await runWell();
    expect(fetched()).toEqual([110]);
    expect(run.output).not.toContain('compared with the bucket');
    // At most five archive files change: the segments of the first and the last blocks, a level, and the root.
    const archived = (keys: readonly string[]) => keys.filter((key) => key.startsWith('archive/'));
    expect([archived(sent()).length <= 5, archived(removed()).length > 0]).toEqual([true, true]);
    expectOnlyChanges(before);
    await expectMirror();
  });

  it('replaces blocks that the chain replaced', async () => {
    const before = bytesInBucket();
    await source.set('109b', '110b', '111b');
    await runWell();
    expect(fetched()).toEqual([109, 110, 111]);
    expectOnlyChanges(before);
    await expectMirror();
  });

  it('keeps the cache if the source does not answer, and continues in the next run', async () => {
    source.status = 503;
    const failed = await runWorkflow();
    expect(failed.isGood).toBe(false);
    expect(failed.scripts.at(-1)).toMatchObject({ code: 3, script: expect.stringContaining('npm run pull') });
    expect(s3.requests).toEqual([]);
    source.status = undefined;
    await source.set('112b');
    expect((await runWell()).output).not.toContain('compared with the bucket');
    expect(fetched()).toEqual([112]);
    await expectMirror();
  });

  /**
   * Lets the upload fail at the manifest. The pages are already in the bucket, but readers see no file that names them.
   */
  const failLate = () => {
    s3.intercept = (method, key) => Promise.resolve(method === 'PUT' && key === MANIFEST ? 403 : undefined);
  };

  it.each([
    ['saved what it knew', {}],
    ['was lost with its machine', { diesAfter: 'hosting/upload.sh' }],
  ])('makes up for an upload that failed and %s, if the chain then returned to its old state', async (how, options) => {
    const before = bytesInBucket();
    const [entries, tip] = [cache.size, Math.max(...source.chain.keys())];
    await source.set(`${tip}x`);
    failLate();
    const failed = await runWorkflow(options);
    expect(failed.isGood).toBe(false);
    expect(failed.scripts.at(-1)?.script).toContain('hosting/upload.sh');
    expect(cache.size).toBe(how.startsWith('saved') ? entries + 1 : entries);
    expect([...s3.objects.keys()].some((key) => !before.has(key))).toBe(true);

    s3.intercept = () => Promise.resolve(undefined);
    await source.set(`${tip}b`);
    const run = await runWell();
    expect(run.output.includes('compared with the bucket')).toBe(!how.startsWith('saved'));
    await expectMirror();
    expect(bytesInBucket().size).toBe(before.size);
    for (const [key, bytes] of bytesInBucket()) expect(before.get(key)?.equals(bytes), key).toBe(true);
  });

  it('sends nothing if a run is started again, and compares with the bucket on request', async () => {
    expect((await runWell({ attempt: 2 })).output).toContain('0 files sent');
    s3.objects.delete([...s3.objects.keys()].find((key) => key.includes('/blocks/')) ?? '');
    expect((await runWell()).output).toContain('0 files sent');
    expect((await runWell({ inputs: { compare: true, confirmations: '7' } })).output).toContain('compared with the bucket');
    await expectMirror();
  });

  it.each([[['input/pulled', '.cache', 'dist']], [['input/pulled']], [['.cache']], [['dist']]])(
    'ends as expected without %s',
    async (lost) => {
      const tip = Math.max(...source.chain.keys());
      const before = bytesInBucket();
      await source.set(`${tip}c`, `${tip + 1}b`);
      const left = ['input/pulled', '.cache', 'dist'].filter((path) => !lost.includes(path));
      if (left.length === 0) cache.clear();
      else pack([...cache.keys()].at(-1) ?? '', left);
      const run = await runWell();
      expect(fetched().length).toBe(lost.includes('input/pulled') ? WINDOW : 2);
      expect(run.output.includes('compared with the bucket')).toBe(lost.includes('.cache'));
      expectOnlyChanges(before);
      await expectMirror();
    },
  );

  it('fetches a deeper reorganisation only on request', async () => {
    const tip = Math.max(...source.chain.keys());
    await source.set(...Array.from({ length: 8 }, (_, i) => `${tip - 7 + i}d`));
    const failed = await runWorkflow();
    expect(failed.scripts.at(-1)).toMatchObject({ code: 2, stderr: expect.stringContaining('--confirmations') });
    await runWell({ inputs: { confirmations: '10' } });
    await expectMirror();
    expect(existsSync(pagesArtifact)).toBe(false);
  });

  it('passes the complete build to GitHub Pages if no bucket is set', async () => {
    const tip = Math.max(...source.chain.keys());
    await source.set(`${tip + 1}d`);
    await runWell({ vars: { BUCKET: '' } });
    expect(s3.requests).toEqual([]);
    const expected = await source.expected();
    const published = filesBelow(expected).filter((path) => !path.startsWith('.'));
    expect(filesBelow(pagesArtifact)).toEqual(published);
    const wrong = published.filter((path) => !readFileSync(join(pagesArtifact, path)).equals(readFileSync(join(expected, path))));
    expect(wrong).toEqual([MANIFEST]);
  });
});

describe('the build command for Netlify', () => {
  it.each([
    ['docs/ci.md', 'hiro', 'archive', 'hiro'],
    ['docs/ci.md', '0x', 'archive', 'contract'],
    ['netlify.toml', '0x', 'archive', 'contract'],
    ['netlify.toml', undefined, 'files', 'hiro'],
  ])('of %s follows the settings: dialect %s, layout %s', async (recipe, dialect, layout, expected) => {
    const [, command = ''] = /^ *command = "(npm run build .*)"$/m.exec(readFileSync(join(ROOT, recipe), 'utf8')) ?? [];
    const settings = join(workspace, 'rune-mirror.json');
    for (const path of [dist, join(workspace, '.cache'), settings]) rmSync(path, { recursive: true, force: true });
    if (dialect !== undefined) writeFileSync(settings, JSON.stringify({ dialect, layout }));
    const built = await run(['bash', '-c', command], {});
    expect(built.code, built.stderr).toBe(0);
    expect(JSON.parse(readFileSync(join(dist, MANIFEST), 'utf8'))).toMatchObject({ dialect: expected, layout });
  });
});

describe('the script for cron in docs/ci.md', () => {
  it('does the same, and a second run that starts meanwhile does nothing', async () => {
    const [, documented = ''] = /```sh\n(#!\/bin\/sh\n[\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/ci.md'), 'utf8')) ?? [];
    const file = join(work, 'update.sh');
    writeFileSync(file, documented.replace('/srv/rune-activity-mirror', workspace));
    const settings = { source: source.url, blocks: `-${WINDOW}..`, layout: 'archive', dialect: 'hiro', upload: `r2:${BUCKET}` };
    writeFileSync(join(workspace, 'rune-mirror.json'), JSON.stringify(settings));
    const env = {
      PULL_HEADERS: `x-api-key: ${API_KEY}`,
      RCLONE_CONFIG_R2_TYPE: 's3',
      RCLONE_CONFIG_R2_PROVIDER: 'Other',
      RCLONE_CONFIG_R2_ENDPOINT: `http://127.0.0.1:${s3.port}`,
      RCLONE_CONFIG_R2_ACCESS_KEY_ID: ACCESS_KEY.id,
      RCLONE_CONFIG_R2_SECRET_ACCESS_KEY: ACCESS_KEY.secret,
    };
    const tip = Math.max(...source.chain.keys());
    await source.set(`${tip}e`, `${tip + 1}e`);
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
