/**
 * Runs hosting/upload.sh with the real rclone, and with an S3 server on this machine. At the end, the bucket has the files of the build,
 * whatever happened before. During an upload, readers get an old answer, a new answer, or a 503. More kills: KILLS=50 npx vitest run
 * --config test/hosts/vitest.config.ts upload
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LAYOUTS, type Layout } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from '../support/archives.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { finished, ROOT } from '../support/cli.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { randomFor } from '../support/seed.ts';
import { until } from '../support/until.ts';
import { ACCESS_KEY, BUCKET, type S3Server, startS3 } from './s3Server.ts';

const KILLS = Number(process.env['KILLS'] ?? 2);
const random = randomFor('kills of uploads');
const MANIFEST = 'runes/v1/manifest.json';
const REMOTE = `test:${BUCKET}`;

const work = temporaryFolder();
let s3: S3Server;

beforeAll(async () => {
  const { error } = spawnSync('rclone', ['version']);
  if (error !== undefined)
    throw new Error(
      'rclone is not installed, and these tests need it: apt-get install rclone (Debian, Ubuntu), brew install rclone (macOS)',
    );
  writeInputs();
  s3 = await startS3({ isPublic: true });
});
afterAll(() => s3?.close());
beforeEach(() => {
  s3.objects.clear();
  s3.requests.length = 0;
  s3.intercept = () => Promise.resolve(undefined);
});

/** Blocks of each input, as height and fork. Compared with `before`, `after` replaces blocks 3 and 4, removes 5 and 6, and adds 7 and 8. */
const INPUTS: Readonly<Record<string, readonly string[]>> = {
  before: ['1a', '2a', '3a', '4a', '5a', '6a'],
  after: ['1a', '2a', '3b', '4b', '7a', '8a'],
  later: ['1a', '2a', '3b', '4c', '7a', '9a'],
  // Another chain.
  other: ['1b', '2a', '3a', '4a', '5a', '6a'],
  // Has a longer manifest.
  longer: ['1a', '2a', '3a', '4a', '5a', '6a', '1000a'],
};

const blockHash = (block: string) => hex(`block ${block}`);
/** Returns the id of a transaction. Every second transaction of a block is the same in all forks. */
const txId = (block: string, tx: number) => hex(`tx ${tx % 2 === 0 ? block.slice(0, -1) : block} ${tx}`);

function writeInputs(): void {
  for (const [name, blocks] of Object.entries(INPUTS)) {
    const files = blocks.map((block) => {
      const records = Array.from({ length: 16 }, (_, tx) =>
        Array.from({ length: tx === 3 ? 30 : 1 + (tx % 3) }, (_, i) =>
          record(Number.parseInt(block, 10), tx, {
            amount: `${i}`,
            operation: tx % 2 === 0 ? 'send' : 'receive',
            location: { block_hash: blockHash(block), tx_id: txId(block, tx) },
          }),
        ),
      );
      return [`${name}/${block}.ndjson`, ndjson(records.flat())] as const;
    });
    writeFiles(work, Object.fromEntries(files));
  }
}

/** Targets that are requested while an upload runs. */
const TARGETS = [...new Set(Object.values(INPUTS).flat())].flatMap((block) => [
  ...[Number.parseInt(block, 10), blockHash(block)].flatMap((id) =>
    ['', '?limit=60', '?limit=7&offset=33', '?operation_type=send'].map((query) => `/runes/v1/blocks/${id}/activity${query}`),
  ),
  ...[2, 3, 5].map((tx) => `/runes/v1/transactions/${txId(block, tx)}/activity?limit=25&offset=1`),
]);

const ask = async (mirror: FetchMirror, target: string) => {
  const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
  return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
};

const answersOf = async (dist: string) => {
  const mirror = new FetchMirror(fileServer(dist).fetchFile, 0);
  return Promise.all(TARGETS.map((target) => ask(mirror, target)));
};

/** Requests targets from the bucket over HTTP until `stop` is called. `allowed` has the allowed answers for each target. */
function poll(allowed: readonly (readonly string[])[]): { turn(): Promise<void>; stop(): Promise<Record<string, number>> } {
  const outcomes: Record<string, number> = { '503': 0 };
  const fetchFile = (path: string) => fetch(`http://127.0.0.1:${s3.port}/${BUCKET}/${path}`);
  // One mirror reads everything anew. The other caches everything as long as possible.
  const mirrors = [new FetchMirror(fetchFile, 0), new FetchMirror(fetchFile, 600_000)];
  let isStopped = false;
  const waiting: (() => void)[] = [];
  const work = mirrors.map(async (mirror) => {
    // Asks for all targets once more after the upload.
    for (let [i, left] = [0, TARGETS.length]; !isStopped || left > 0; i = (i + 7) % TARGETS.length, left -= isStopped ? 1 : 0) {
      const target = TARGETS[i] ?? '';
      const answer = await ask(mirror, target);
      const which = answer === '503' ? '503' : String(allowed.findIndex((answers) => answers[i] === answer));
      if (which === '-1') throw new Error(`${target} was answered with what no build says: ${answer.slice(0, 200)}`);
      outcomes[which] = (outcomes[which] ?? 0) + 1;
      for (const go of waiting.splice(0)) go();
    }
  });
  // Errors are reported by stop().
  for (const one of work) one.catch(() => {});
  return {
    /** Resolves after the next answer, or if there are no more because a reader failed or was stopped. */
    turn: () => Promise.race([new Promise<void>((resolve) => waiting.push(resolve)), ...work.map((one) => one.catch(() => {}))]),
    stop: async () => {
      isStopped = true;
      await Promise.all(work);
      return outcomes;
    },
  };
}

function start(dist: string, more: Readonly<Record<string, string>> = {}, args = [REMOTE, dist, `${dist}.cache`]): ChildProcess {
  const env = {
    PATH: process.env['PATH'],
    HOME: work,
    RCLONE_CONFIG: join(work, 'rclone.conf'),
    RCLONE_CONFIG_TEST_TYPE: 's3',
    RCLONE_CONFIG_TEST_PROVIDER: 'Other',
    RCLONE_CONFIG_TEST_ENDPOINT: `http://127.0.0.1:${s3.port}`,
    RCLONE_CONFIG_TEST_FORCE_PATH_STYLE: 'true',
    RCLONE_CONFIG_TEST_ACCESS_KEY_ID: ACCESS_KEY.id,
    RCLONE_CONFIG_TEST_SECRET_ACCESS_KEY: ACCESS_KEY.secret,
    RCLONE_RETRIES: '1',
    RCLONE_LOW_LEVEL_RETRIES: '1',
    RCLONE_TRANSFERS: '4',
    ...more,
  };
  // Runs in its own process group, so that a signal kills rclone together with the script.
  return spawn(join(ROOT, 'hosting/upload.sh'), args, { env, cwd: work, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function upload(dist: string, more?: Readonly<Record<string, string>>): Promise<string> {
  const { code, stdout, stderr } = await finished(start(dist, more));
  expect(code, stderr).toBe(0);
  return stdout;
}

/** Uploads after an upload was killed. Repeats while the killed rclone still has the lock, until its process has ended. */
async function uploadAfterKill(dist: string): Promise<void> {
  await until(async () => {
    const { code, stderr } = await finished(start(dist));
    if (code !== 0) expect(stderr).toContain('another upload');
    return code === 0;
  });
}

const build = (dist: string, input: string, layout: Layout) => testBuild(dist, { inputs: [join(work, input)], layout, lists: true });

/**
 * Checks that the bucket has the files of the build, byte for byte, and apart from these only the files `others` and files that are named
 * by their content, which the next upload may delete. Returns the latter.
 */
function expectSame(dist: string, others: readonly string[] = []): string[] {
  const files = filesBelow(dist).filter((path) => !path.startsWith('.'));
  const [present, unused] = [new Set([...files, ...others]), [...s3.objects.keys()].filter((key) => !files.includes(key))];
  expect([...s3.objects.keys()].filter((key) => !present.has(key) && !/^archive\/|^rows\/[0-9]+-/.test(key))).toEqual([]);
  expect([...present].filter((key) => !s3.objects.has(key))).toEqual([]);
  const wrong = files.filter((path) => !readFileSync(join(dist, path)).equals(s3.objects.get(path)?.bytes ?? Buffer.alloc(0)));
  expect(wrong).toEqual([]);
  return unused.filter((key) => !others.includes(key));
}

/** Returns the requests that change objects. */
const changesOf = (requests: readonly string[]) => requests.filter((line) => /^(?:PUT|DELETE) /.test(line));

let folders = 0;
const newDist = () => {
  folders += 1;
  return join(work, `dist-${folders}`);
};

/**
 * For each layout, the uploaded build of the input `before`, and the objects in the bucket after the upload. Most tests begin with them.
 */
const beginnings = new Map<Layout, { readonly dist: string; readonly objects: S3Server['objects'] }>();

/** Restores the state after an upload of the input `before`: fills the bucket, and returns a copy of the build. */
async function uploaded(layout: Layout): Promise<string> {
  let beginning = beginnings.get(layout);
  if (beginning === undefined) {
    const first = newDist();
    await build(first, 'before', layout);
    await upload(first);
    beginning = { dist: first, objects: new Map(s3.objects) };
    beginnings.set(layout, beginning);
  }
  const dist = newDist();
  // `cp -a` keeps the fractions of seconds in file times, which the script compares.
  for (const end of ['', '.cache']) execFileSync('cp', ['-a', `${beginning.dist}${end}`, `${dist}${end}`]);
  for (const [key, object] of beginning.objects) s3.objects.set(key, object);
  return dist;
}

describe.each(LAYOUTS)('an upload of layout %s', (layout) => {
  it('fills an empty bucket, with the manifest last, and sends nothing if nothing changed', async () => {
    const dist = newDist();
    await build(dist, 'before', layout);
    await upload(dist);
    expect(expectSame(dist)).toEqual([]);
    expect(changesOf(s3.requests).at(-1)).toBe(`PUT ${MANIFEST}`);
    expect(s3.objects.get(MANIFEST)?.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, no-cache, must-revalidate',
    });
    s3.requests.length = 0;
    expect(await upload(dist)).toContain('; 0 removed)');
    expect(changesOf(s3.requests)).toEqual([]);
  });

  it('also fills a folder of a disk, which lacks the folders of other layouts', async () => {
    const dist = newDist();
    const folder = `${dist}-copy`;
    for (const input of ['before', 'after', 'after']) {
      await build(dist, input, layout);
      const { code, stderr } = await finished(start(dist, {}, [folder, dist, `${dist}.cache`]));
      expect(code, stderr).toBe(0);
    }
    const filesOf = (of: string) => filesBelow(of).filter((path) => !path.startsWith('.'));
    expect(filesOf(folder)).toEqual(filesOf(dist));
    for (const path of filesOf(dist)) expect(readFileSync(join(folder, path)).equals(readFileSync(join(dist, path))), path).toBe(true);
  });

  it('sends only changes: pages, then the files that name them, the manifest, then removals', async () => {
    const dist = await uploaded(layout);
    const before = new Map(s3.objects);
    const old = await answersOf(dist);
    await build(dist, 'after', layout);
    s3.requests.length = 0;
    const polling = poll([old, await answersOf(dist)]);
    s3.intercept = async (method) => {
      if (method !== 'GET') await polling.turn();
      return undefined;
    };
    await upload(dist);
    const outcomes = await polling.stop();
    expectSame(dist);
    expect(outcomes['0']).toBeGreaterThan(0);
    expect(outcomes['1']).toBeGreaterThan(0);

    const changes = changesOf(s3.requests);
    const rank = (line: string) =>
      line.startsWith('DELETE') ? 3 : line.endsWith(MANIFEST) ? 2 : /^PUT (?:runes\/v1\/blocks|archive|rows)\//.test(line) ? 0 : 1;
    expect(changes.map(rank)).toEqual(changes.map(rank).sort());
    const differing = [...new Set([...before.keys(), ...s3.objects.keys()])].filter(
      (key) => before.get(key)?.bytes.equals(s3.objects.get(key)?.bytes ?? Buffer.alloc(0)) !== true,
    );
    expect(changes.map((line) => line.replace(/^[A-Z]+ /, '')).sort()).toEqual(differing.sort());
  });

  it('may be killed at any moment and run again', async () => {
    const dist = await uploaded(layout);
    const totals: Record<string, number> = {};
    await build(dist, 'after', layout);
    s3.requests.length = 0;
    await upload(dist);
    /** Number of requests of a complete upload. Kills come before one of them is answered. */
    const most = s3.requests.length;
    let killed = 0;
    for (let i = 0; i < KILLS; i += 1) {
      const [from = '', to = ''] = i % 2 === 0 ? ['after', 'later'] : ['later', 'after'];
      const old = await answersOf(dist);
      await build(dist, to, layout);
      const polling = poll([old, await answersOf(dist)]);
      for (let kill = 0; kill < 2; kill += 1) {
        const child = start(dist);
        let left = 1 + Math.floor(random() * most);
        s3.intercept = async () => {
          left -= 1;
          if (left === 0 && child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
          return undefined;
        };
        if ((await finished(child)).code !== 0) killed += 1;
        s3.intercept = () => Promise.resolve(undefined);
      }
      // Some uploads return to the old build instead of finishing the killed one.
      if (i % 4 === 3) await build(dist, from, layout);
      await uploadAfterKill(dist);
      for (const [which, count] of Object.entries(await polling.stop())) totals[which] = (totals[which] ?? 0) + count;
      expectSame(dist);
    }
    expect(killed).toBeGreaterThan(0);
    expect(totals['0']).toBeGreaterThan(0);
    expect(totals['1']).toBeGreaterThan(0);
  });
});

describe('an upload', () => {
  it('repairs a bucket that something else changed, and keeps objects that are not of a build', async () => {
    const dist = await uploaded('archive');
    const stray = { bytes: Buffer.from('{}'), headers: { etag: '"x"', 'last-modified': new Date().toUTCString() } };
    const others = ['robots.txt', 'rows/mine.txt', 'rows/below/0-99-0123456789abcdef.parquet'];
    for (const key of [...others, 'runes/v1/blocks/99/60/0.json', 'runes/v1/digests/zz.json', 'rows/900-900-0123456789abcdef.parquet'])
      s3.objects.set(key, stray);
    const first = [...s3.objects.keys()].find((key) => key.startsWith('archive/')) ?? '';
    expect(s3.objects.delete(first)).toBe(true);
    s3.requests.length = 0;
    await upload(dist);
    expect(expectSame(dist, others)).toEqual(['rows/900-900-0123456789abcdef.parquet']);
    expect(changesOf(s3.requests).filter((line) => line.startsWith('PUT '))).toEqual([`PUT ${first}`]);
    await upload(dist);
    expect(expectSame(dist, others)).toEqual([]);
  });

  it('needs nothing of an upload from another machine, also of one that died before the manifest', async () => {
    const dist = await uploaded('archive');
    const other = newDist();
    await build(other, 'later', 'archive');
    s3.intercept = (method, key) => Promise.resolve(method === 'PUT' && key === MANIFEST ? 500 : undefined);
    expect((await finished(start(other))).code).not.toBe(0);
    s3.intercept = () => Promise.resolve(undefined);
    await upload(dist);
    expectSame(dist);
    await upload(other);
    expectSame(other);
    await build(dist, 'after', 'archive');
    await upload(dist);
    expectSame(dist);
  });

  it('sends files of rows, and removes them like other files that are named by their content', async () => {
    const dist = newDist();
    // Only a few blocks, whose files still need more than one page of a listing.
    const blocks = { from: 840_002, to: 840_005 };
    const buildRows = (parquet: boolean) =>
      testBuild(dist, { inputs: CONFORMANCE_INPUTS, blocks, layout: 'archive', parquet, lists: true });
    await buildRows(true);
    await upload(dist);
    expect(expectSame(dist)).toEqual([]);
    const rows = filesBelow(dist).filter((path) => path.startsWith('rows/'));
    expect(rows.length).toBeGreaterThan(2);
    await buildRows(false);
    await upload(dist);
    expect(rows.filter((path) => !s3.objects.has(path))).toEqual([]);
    await upload(dist);
    expect(expectSame(dist)).toEqual([]);
  });

  it('leaves readers of the last manifest the files that it names', async () => {
    const dist = await uploaded('archive');
    const answers = await answersOf(dist);
    const remembering = new FetchMirror((path) => fetch(`http://127.0.0.1:${s3.port}/${BUCKET}/${path}`), 600_000);
    await ask(remembering, TARGETS[0] ?? '');
    await build(dist, 'after', 'archive');
    await upload(dist);
    for (const [i, target] of TARGETS.entries()) expect(await ask(remembering, target)).toBe(answers[i]);
    const unused = expectSame(dist);
    expect(unused.length).toBeGreaterThan(0);
    await build(dist, 'later', 'archive');
    await upload(dist);
    const next = expectSame(dist);
    expect(next.filter((path) => unused.includes(path))).toEqual([]);
  });
});

describe('an upload that fails', () => {
  const dist = join(work, 'dist-bad');
  beforeAll(() => build(dist, 'before', 'archive'));

  const failure = async (args: readonly string[], env = {}, expected = 3) => {
    const { code, stderr } = await finished(start(dist, env, [...args]));
    expect([code, stderr]).toEqual([expected, expect.any(String)]);
    return stderr;
  };

  it('says so when files could not be sent, and sends them the next time', async () => {
    await upload(dist);
    await build(dist, 'after', 'archive');
    const { archive } = JSON.parse(readFileSync(join(dist, MANIFEST), 'utf8')) as { archive: { root: string } };
    s3.requests.length = 0;
    s3.intercept = (method, key) => Promise.resolve(method === 'PUT' && key.includes(archive.root) ? 503 : undefined);
    const { code, stderr } = await finished(start(dist));
    expect(code).not.toBe(0);
    expect(stderr).toContain(`${archive.root}.bin`);
    expect(changesOf(s3.requests).filter((change) => change.startsWith('DELETE') || change.includes(MANIFEST))).toEqual([]);
    s3.intercept = () => Promise.resolve(undefined);
    await upload(dist);
    expectSame(dist);
  });

  it('says so when the bucket cannot be reached or read', async () => {
    expect(await failure([REMOTE, dist], { RCLONE_CONFIG_TEST_ENDPOINT: 'http://127.0.0.1:1' })).toContain(`${REMOTE} cannot be read`);
    expect(await failure([REMOTE, dist], { RCLONE_CONFIG_TEST_ACCESS_KEY_ID: 'wrong' })).toContain(`${REMOTE} cannot be read`);
  });

  it('gives up a bucket that only has errors after a few requests, whose defaults would take minutes', async () => {
    s3.intercept = () => Promise.resolve(500);
    const said = await failure([REMOTE, dist], { RCLONE_RETRIES: '', RCLONE_LOW_LEVEL_RETRIES: '' });
    expect(said).toContain(`${REMOTE} cannot be read`);
    expect(s3.requests.length).toBeLessThan(20);
  });

  it('advises to create a bucket that does not exist, after a few lines of rclone, without its times', async () => {
    const said = await failure(['test:other-bucket', dist]);
    expect(said).toMatch(/^(?:(?!\d{4}\/).*\n){1,5}\(rclone: \d+ more lines\)\nupload: rclone failed, .*\n$/);
    expect(said).toContain('NoSuchBucket');
    expect(said).toContain('Check that the bucket exists and that rclone may write to it');
  });

  it('names a missing program or setting', async () => {
    expect(await failure([], {}, 1)).toContain('usage: hosting/upload.sh [--replace] REMOTE');
    expect(await failure(['bucket', dist], {}, 1)).toContain('r2:my-bucket');
    expect(await failure([REMOTE, join(work, 'none')], {}, 2)).toContain('build not found in');
    const bin = join(work, 'bin');
    mkdirSync(bin);
    for (const name of ['sh', 'grep', 'cat']) {
      const path = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
      symlinkSync(path.find((file) => existsSync(file)) ?? '', join(bin, name));
    }
    expect(await failure([REMOTE, dist], { PATH: bin })).toContain('rclone is not installed');
  });

  it('replaces another mirror in the bucket only if it is told to', async () => {
    await upload(dist);
    for (const other of [{ layout: 'files' }, { dialect: 'hiro' }, { pageSizes: [20, 100] }, { operationPages: false }] as const) {
      const strange = newDist();
      await testBuild(strange, { inputs: [join(work, 'after')], layout: 'archive', ...other });
      expect(await failure([REMOTE, strange, `${dist}.cache`], {}, 2)).toContain(`${REMOTE} has another mirror`);
    }
    const foreign = newDist();
    await build(foreign, 'other', 'archive');
    expect(await failure([REMOTE, foreign], {}, 2)).toContain(`${REMOTE} has another mirror: its block 1 has another hash than that of`);
    const poorer = newDist();
    await testBuild(poorer, { inputs: [join(work, 'after')], layout: 'archive', lists: false });
    expect(await failure([REMOTE, poorer], {}, 2)).toMatch(new RegExp(`${REMOTE} has lists that .* lacks: (?:[a-z]+_?[a-z]* )+Build them`));
    const sample = newDist();
    await testBuild(sample, { inputs: [SAMPLE_INPUT], layout: 'archive', lists: true });
    expect(await failure([REMOTE, sample], {}, 2)).toContain('or one of both is the sample');
    expectSame(dist);
    const { code, stderr } = await finished(start(sample, {}, ['--replace', REMOTE, sample]));
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    expectSame(sample);
    expect(await failure([REMOTE, dist], {}, 2)).toContain(`${REMOTE} has another mirror`);
    expect((await finished(start(dist, {}, ['--replace', REMOTE, dist]))).code).toBe(0);
    expectSame(dist);
  });

  it('waits until builds and other uploads have ended', async () => {
    const marker = join(dist, '.rune-activity-mirror');
    const finishedMarker = readFileSync(marker);
    appendFileSync(marker, 'A build is running here, or it did not finish.\n');
    expect(await failure([REMOTE, dist])).toContain('Build again first');
    writeFileSync(marker, finishedMarker);
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    s3.intercept = async (method) => {
      if (method === 'PUT') await held;
      return undefined;
    };
    const child = start(dist);
    const first = finished(child);
    await until(() => s3.requests.some((line) => line.startsWith('PUT ')), child);
    expect(await failure([REMOTE, dist, `${dist}.cache`])).toContain('another upload');
    release();
    expect((await first).code).toBe(0);
    expectSame(dist);
  });

  it('detects a build that changes the files meanwhile, and completes the bucket the next time', async () => {
    await build(dist, 'after', 'archive');
    await upload(dist);
    await build(dist, 'before', 'archive');
    // The build begins with the first file that is sent, or with the first listing after the manifest.
    const moments = [
      (method: string) => method === 'PUT',
      (_: string, key: string) => key === '' && s3.requests.includes(`PUT ${MANIFEST}`),
    ];
    for (const [sent, isMoment] of moments.entries()) {
      let building: Promise<unknown> | undefined;
      s3.intercept = async (method, key) => {
        if (building === undefined && !isMoment(method, key)) return undefined;
        building ??= build(dist, sent === 0 ? 'later' : 'longer', 'archive');
        await building;
        return undefined;
      };
      s3.requests.length = 0;
      const { code, stderr } = await finished(start(dist));
      expect([code, stderr]).toEqual([3, expect.stringContaining('was changed during the upload')]);
      // A new manifest must not come before the files that it names.
      expect(s3.requests.filter((line) => line === `PUT ${MANIFEST}`)).toHaveLength(sent);
    }
    s3.intercept = () => Promise.resolve(undefined);
    await upload(dist);
    expectSame(dist);
  });
});
