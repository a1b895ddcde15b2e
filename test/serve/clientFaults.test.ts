/**
 * Tests the client with faulty hosts, whose files are missing, cut, replaced or refused. The client returns the exact list or throws an
 * error. It never returns another list.
 */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { contentOf, readArchive } from '../support/archives.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { type PlainFiles, startPlainFiles } from '../support/plainFiles.ts';
import { ndjson, record } from '../support/records.ts';
import { startServer } from '../support/server.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
/** Options of builds of the sample. */
const BUILDS = {
  files: { layout: 'files', dialect: 'contract' },
  archive: { layout: 'archive', dialect: 'contract' },
  'files-hiro': { layout: 'files', dialect: 'hiro' },
  'archive-hiro': { layout: 'archive', dialect: 'hiro' },
} as const;
const NAMES = Object.keys(BUILDS) as (keyof typeof BUILDS)[];
const MANIFEST = 'runes/v1/manifest.json';
const TX = 'a1b3a92c17a005483322cf807b73bc9f7ec2977867cf5cbaec18754b900bf6bb';
const UNKNOWN = 'ff'.repeat(32);

let client: typeof source;
let host: PlainFiles;

beforeAll(async () => {
  for (const name of NAMES) await testBuild(at(name), { inputs: [SAMPLE_INPUT], ...BUILDS[name] });
  client = await import(pathToFileURL(join(at('archive'), 'client.js')).href);
  host = await startPlainFiles(at('files'));
});

afterAll(() => host.close());

beforeEach(() => {
  host.folder = at('files');
  host.intercept = () => false;
  host.asked.length = 0;
});

const send = (response: ServerResponse, status: number, type: string, body: string | Buffer): true => {
  response.writeHead(status, { 'content-type': type }).end(body);
  return true;
};
const S3_ABSENCE =
  '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message><RequestId>A1</RequestId></Error>';

/** Returns the error of `work`, which must fail with a MirrorError of status 503. */
async function failure(work: Promise<unknown>): Promise<source.MirrorError> {
  const error = await work.then(
    (value) => new Error(`was answered with ${JSON.stringify(value).slice(0, 100)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof client.MirrorError)) throw error;
  expect([error.statusCode, error.error, error.name]).toEqual([503, 'Service Unavailable', 'MirrorError']);
  return error;
}

describe.each(LAYOUTS)('a missing file, layout %s', (layout) => {
  /** True for the files that contain the pages of block 2000007. */
  let isLost: (path: string) => boolean;
  /** Requests for a block that does not exist. In an archive, the root alone shows that it does not exist. */
  const ABSENT = layout === 'files' ? [{ block: 5 }] : [];
  const OTHER = { block: 840000 };

  beforeAll(() => {
    const { segments = [] } = layout === 'files' ? {} : readArchive(at(layout)).root;
    const segment = segments.find(({ first, last }) => first <= 2000007 && last >= 2000007);
    isLost = (path) => path.includes(segment?.file ?? '2000007');
  });
  beforeEach(() => {
    host.folder = at(layout);
  });

  it('may be a 403 with the error code of S3: all answers stay exact', async () => {
    host.intercept = (_, file, response) => file === undefined && send(response, 403, 'application/xml', S3_ABSENCE);
    const exact = await startServer(at(layout));
    const mirror = new client.Mirror(host.base);
    for (const { target } of CASES.filter(({ method = 'GET' }) => method === 'GET')) {
      const { status, body } = await exact.send('GET', target);
      expect([target, await mirror.get(target)]).toEqual([target, { status, body }]);
    }
    await exact.close();
  });

  it.each([
    ['a page of a firewall', 'text/html', '<html><head><title>403 Forbidden</title></head></html>'],
    ['a page of a firewall that quotes S3', 'text/html', S3_ABSENCE],
    ['another refusal of S3', 'application/xml', S3_ABSENCE.replace('AccessDenied', 'SignatureDoesNotMatch')],
    ['XML that has the words elsewhere', 'application/xml', '<a><Code>AccessDenied</Code></a>'],
    ['JSON', 'application/json', '{"limit":20,"offset":0,"total":0,"results":[]}'],
    ['nothing', 'application/xml', ''],
  ])('is not assumed for any other 403, such as %s', async (_, type, body) => {
    host.intercept = (path, file, response) => (file === undefined || isLost(path)) && send(response, 403, type, body);
    const mirror = new client.Mirror(host.base);
    for (const query of [...ABSENT, { block: 2000007 }]) {
      expect((await failure(mirror.activity(query))).message).toMatch(/was answered with status 403$/);
    }
    expect((await mirror.activity(OTHER)).total).toBeGreaterThan(0);
  });

  it.each([
    ['web page', 'text/html', '<!doctype html><title>My app</title>'],
    ['JSON of its own', 'application/json', '{"error":"not found"}'],
    ['empty body', 'text/plain', ''],
  ])('and answered with 200 and a %s is an error, and existing files still work', async (_, type, body) => {
    host.intercept = (path, file, response) => (file === undefined || isLost(path)) && send(response, 200, type, body);
    const mirror = new client.Mirror(host.base);
    for (const query of [...ABSENT, { block: 2000007 }]) {
      await failure(mirror.activity(query));
      expect(await mirror.get(`/runes/v1/blocks/${query.block}/activity`)).toEqual({
        status: 503,
        body: '{"statusCode":503,"error":"Service Unavailable","message":"a file of this mirror is missing or unreadable; try again"}',
      });
    }
    if (layout === 'files') await failure(mirror.activity({ transaction: UNKNOWN }));
    expect((await mirror.activity(OTHER)).total).toBeGreaterThan(0);
    await failure(new client.Mirror(`${host.base}/nowhere`).manifest());
  });

  it('that an answer needs causes a 503 with its name', async () => {
    host.intercept = (path, _, response) =>
      (path.endsWith('/60/60.json') || (layout === 'archive' && isLost(path))) && send(response, 404, 'text/html', '');
    const mirror = new client.Mirror(host.base);
    const error = await failure(mirror.activity({ block: 2000007, limit: 60, offset: 30 }));
    expect(error.message).toMatch(
      layout === 'files'
        ? /^a file of this mirror is missing or unreadable; try again, and if this lasts, tell its operator \(runes\/v1\/blocks\/2000007\S*\/60\/60.json is missing/
        : /^a file of this mirror is missing or unreadable; try again, and if this lasts, tell its operator \(archive cannot be read: the archive's file [0-9a-f]{64} is missing/,
    );
    expect((await mirror.get('/runes/v1/blocks/2000007/activity?limit=60&offset=30')).status).toBe(503);
  });

  it('is distinct from an unreadable file: other statuses are errors, and are not cached', async () => {
    const mirror = new client.Mirror(host.base, { freshMs: Number.POSITIVE_INFINITY });
    for (const status of [500, 502, 503, 429, 410, 401, 204]) {
      host.intercept = (_path, _file, response) => send(response, status, 'text/plain', '');
      await failure(new client.Mirror(host.base).activity({ block: 5 }));
      host.intercept = (path, _, response) => path !== MANIFEST && send(response, status, 'text/plain', '');
      await failure(mirror.activity({ block: 2000007 }));
      host.intercept = () => false;
      expect((await mirror.activity({ block: 5 })).total).toBe(0);
      expect((await mirror.activity({ block: 2000007 })).total).toBe(437);
    }
  });
});

describe.each(LAYOUTS)('an incomplete file, layout %s', (layout) => {
  const QUERY = { block: 2000003, limit: 60 };
  beforeEach(() => {
    host.folder = at(layout);
  });

  it.each([QUERY, { block: 2000003, limit: 7, offset: 3 }, { transaction: TX, limit: 60 }])(
    'is an error at any length: %o',
    async (query) => {
      const whole = await new client.Mirror(host.base).activity(query);
      expect(whole.results.length).toBeGreaterThan(0);
      for (const path of new Set(host.asked)) {
        // Ignores changes in the tails of archive files (digests of the content), because a client without keys does not read tails.
        const [, name] = /^archive\/(.*)[.]bin$/.exec(path) ?? [];
        const size = (name === undefined ? readFileSync(join(host.folder, path)) : contentOf(host.folder, name)).length;
        for (const length of [...Array.from({ length: 12 }, (_, i) => Math.floor((size * i) / 12)), size - 2, size - 1]) {
          host.intercept = (asked, file, response) =>
            asked === path && send(response, 200, 'application/json', file?.subarray(0, length) ?? '');
          const answer = await new client.Mirror(host.base).activity(query).catch((error: unknown) => error);
          // Some files end with a line feed, which an answer does not need. Without it, the answer may be right.
          if (length === size - 1 && !(answer instanceof Error)) expect(answer).toEqual(whole);
          else expect([path, length, answer]).toEqual([path, length, expect.any(client.MirrorError)]);
        }
      }
    },
  );

  it('is an error if the connection ends in the middle, with the cause', async () => {
    host.intercept = (path, file, response) => {
      if (path === MANIFEST || file === undefined) return false;
      response.writeHead(200, { 'content-length': file.length });
      response.write(file.subarray(0, file.length / 2), () => response.destroy());
      return true;
    };
    const error = await failure(new client.Mirror(host.base).activity(QUERY));
    expect(error.message).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+\/(?:runes\/v1|archive)\/\S+ cannot be read \(.+\)/);
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('is an error if a page has fewer records than its total says', async () => {
    host.folder = at('files');
    host.intercept = (path, file, response) => {
      if (!path.startsWith('runes/v1/blocks/')) return false;
      const page = JSON.parse(String(file)) as source.ActivityPage;
      return send(response, 200, 'application/json', JSON.stringify({ ...page, results: page.results.slice(0, -1) }));
    };
    expect((await failure(new client.Mirror(host.base).activity(QUERY))).message).toContain('is truncated or not a file of a mirror');
  });

  it('is an error if it is the manifest of another program', async () => {
    for (const body of [
      '{"name":"My app"}',
      '[]',
      'null',
      '"',
      '{"generator":"rune-activity-mirror"}',
      '{"generator":"rune-activity-mirror","layout":"new"}',
    ]) {
      host.intercept = (path, _, response) => path === MANIFEST && send(response, 200, 'application/json', body);
      const mirror = new client.Mirror(host.base);
      await failure(mirror.activity(QUERY));
      await failure(mirror.manifest());
    }
  });
});

describe('a mirror that is replaced while it is read', () => {
  const forever = { freshMs: Number.POSITIVE_INFINITY };

  it.each(NAMES.flatMap((from) => NAMES.filter((to) => to !== from).map((to) => [from, to] as const)))(
    'from %s to %s: a known id never becomes unknown, and gets no page of the old build',
    async (from, to) => {
      const exact = await startServer(at(to));
      for (const [query, target] of [
        [{ block: 2000007 }, 'blocks/2000007/activity'],
        [{ block: 2000007, limit: 60, offset: 30 }, 'blocks/2000007/activity?limit=60&offset=30'],
        [{ transaction: TX, limit: 5 }, `transactions/${TX}/activity?limit=5`],
      ] as const) {
        host.folder = at(from);
        const mirror = new client.Mirror(host.base, forever);
        await mirror.activity(query);
        host.folder = at(to);
        const { total, results } = await mirror.activity(query);
        const fresh = JSON.parse((await exact.send('GET', `/runes/v1/${target}`)).body) as source.ActivityPage;
        expect(total).toBe(fresh.total);
        // A page by height has the same path in both dialects. So the client reads the new page even if it still has the old manifest.
        expect(results).toEqual(fresh.results);
      }
      await exact.close();
    },
  );

  it('by a build with a changed block: the answer is the new one, also if old pages disappear meanwhile', async () => {
    const put = (amount: string) => {
      writeFiles(work, { 'reorg/a.ndjson': ndjson(Array.from({ length: 75 }, (_, i) => record(5, 1, { amount: `${amount}${i}` }))) });
      return testBuild(at(`reorg${amount}`), { inputs: [at('reorg')], layout: 'archive' });
    };
    await put('1');
    await put('2');
    const exact = await startServer(at('reorg2'));
    const target = '/runes/v1/blocks/5/activity?limit=60&offset=10';
    const { body } = await exact.send('GET', target);
    const { root } = (JSON.parse(readFileSync(join(at('reorg1'), MANIFEST), 'utf8')) as { archive: { root: string } }).archive;
    for (const removedAfter of [MANIFEST, `${ARCHIVE_FOLDER}/${root}.bin`]) {
      host.folder = at('reorg1');
      host.asked.length = 0;
      host.intercept = (path, file, response) => {
        host.folder = at(path === removedAfter ? 'reorg2' : host.folder === at('reorg2') ? 'reorg2' : 'reorg1');
        return file !== undefined && send(response, 200, 'application/json', file);
      };
      const mirror = new client.Mirror(host.base, forever);
      expect(await mirror.get(target)).toEqual({ status: 200, body });
      // The client reads the manifest again, because the files of the first manifest are missing.
      expect(host.asked.filter((path) => path === MANIFEST).length).toBe(2);
    }
    await exact.close();
  });

  it('only in part gives a 503', async () => {
    cpSync(at('archive'), at('broken'), { recursive: true });
    rmSync(join(at('broken'), ARCHIVE_FOLDER), { recursive: true });
    host.folder = at('broken');
    expect((await new client.Mirror(host.base).get('/runes/v1/blocks/2000007/activity')).status).toBe(503);
    await failure(new client.Mirror(host.base).activity({ block: 2000007 }));
  });
});

describe.each(LAYOUTS)('a host that answers without end, layout %s', (layout) => {
  const QUERY = { block: 2000007 };
  let paths: ReadonlySet<string>;
  beforeAll(async () => {
    host.folder = at(layout);
    host.asked.length = 0;
    await new client.Mirror(host.base).activity(QUERY);
    paths = new Set(host.asked);
  });
  beforeEach(() => {
    host.folder = at(layout);
  });

  /** Sends bytes until the client leaves. Adds up their number in `sent`. */
  function sendWithoutEnd(status: number, type: string, begin: string | Buffer, sent: { bytes: number }, response: ServerResponse): true {
    response.writeHead(status, { 'content-type': type });
    const part = Buffer.alloc(1024 * 1024, ' ');
    const send = () => {
      do sent.bytes += part.length;
      while (!response.destroyed && response.write(part));
    };
    response.on('drain', send);
    response.write(begin);
    send();
    return true;
  }

  it('is left after 64 MB, whichever file it is, and whatever its status', async () => {
    for (const [status, path] of [...[...paths].map((one) => [200, one] as const), [403, MANIFEST] as const]) {
      const sent = { bytes: 0 };
      host.intercept = (asked, file, response) =>
        asked === path && sendWithoutEnd(status, 'application/xml', status === 200 && file ? file : '<Error>', sent, response);
      const answer = await new client.Mirror(host.base).activity(QUERY).catch((error: unknown) => error);
      // The client knows the sizes of the files of an archive, and leaves when it has that many bytes.
      if (path.startsWith('archive/')) expect(answer).toMatchObject({ total: 437 });
      else expect(answer).toMatchObject({ name: 'MirrorError', message: `${path} has more than 67108864 bytes` });
      expect(sent.bytes).toBeGreaterThan(0);
      expect([path, sent.bytes < 200 * 1024 * 1024]).toEqual([path, true]);
    }
  });

  it('is left after timeoutMs, whichever file it is', async () => {
    const timeoutMs = 54_321;
    const { setTimeout: real } = globalThis;
    const late: (() => void)[] = [];
    // The timers of the client end when the test says so.
    vi.stubGlobal('setTimeout', (work: () => void, ms: number) => (ms === timeoutMs ? void late.push(work) : real(work, ms)));
    // A caller's fetch may not heed signals.
    const deaf: typeof fetch = (input, { signal: _, ...init } = {}) => fetch(input, init);
    try {
      for (const path of paths) {
        for (const options of [{}, { fetch: deaf }]) {
          host.intercept = (asked, file, response) => {
            if (asked !== path) return false;
            response.write(file?.subarray(0, 10) ?? '', () => {
              for (const end of late.splice(0)) end();
            });
            return true;
          };
          const error = await failure(new client.Mirror(host.base, { timeoutMs, ...options }).activity(QUERY));
          expect(error.message).toBe(`${host.base}/${path} did not arrive within ${timeoutMs} ms`);
        }
      }
    } finally {
      vi.unstubAllGlobals();
    }
    host.intercept = () => false;
    expect((await new client.Mirror(host.base, { timeoutMs: Number.POSITIVE_INFINITY }).activity(QUERY)).total).toBe(437);
  });
});

describe('a host that cannot be reached', () => {
  it('is an error with the cause', async () => {
    const gone = await startPlainFiles(at('files'));
    await gone.close();
    const mirror = new client.Mirror(gone.base);
    for (const work of [mirror.activity({ block: 1 }), mirror.get('/runes/v1/blocks/1/activity'), mirror.manifest()]) {
      const error = await failure(work);
      expect(error.message).toMatch(/manifest\.json cannot be read \(fetch failed\)/);
      expect(error.cause).toBeInstanceOf(TypeError);
    }
  });
});

describe('an abort signal', () => {
  /** Holds back the answers to requests for a path until `release` is called. */
  function hold(path: string): { release: () => void; arrived: Promise<void> } {
    let [release, arrive] = [() => {}, () => {}];
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    host.intercept = async (asked) => {
      if (asked === path) {
        arrive();
        await held;
      }
      return false;
    };
    return { release, arrived };
  }

  it.each([MANIFEST, 'runes/v1/blocks/2000007.json'])('ends the wait for %s with its reason', async (path) => {
    const { arrived, release } = hold(path);
    const [aborter, reason] = [new AbortController(), new Error('the user went elsewhere')];
    const answer = new client.Mirror(host.base).activity({ block: 2000007, signal: aborter.signal });
    await Promise.race([arrived, answer]);
    aborter.abort(reason);
    await expect(answer).rejects.toBe(reason);
    release();
  });

  it('that is already aborted causes no request', async () => {
    await expect(client.activity({ base: host.base, block: 1, signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    expect(host.asked).toEqual([]);
  });

  it('of one query does not abort another query that waits for the same manifest', async () => {
    const { arrived, release } = hold(MANIFEST);
    const aborter = new AbortController();
    const mirror = new client.Mirror(host.base);
    const [first, second] = [mirror.activity({ block: 2000007, signal: aborter.signal }), mirror.activity({ block: 2000003 })];
    await arrived;
    aborter.abort();
    await expect(first).rejects.toMatchObject({ name: 'AbortError' });
    release();
    expect((await second).total).toBe(21);
    expect(host.asked.filter((path) => path === MANIFEST)).toHaveLength(1);
  });
});

describe('the files that a query reads', () => {
  it.each([
    ['files', 'a page', { block: 2000007 }, 1, 1],
    ['files', 'a window of two pages', { block: 2000007, limit: 60, offset: 30 }, 2, 2],
    ['files', 'a short list', { block: 2000003, limit: 60, offset: 60 }, 2, 2],
    ['files', 'an unknown id', { transaction: UNKNOWN }, 2, 2],
    // Three reads: the root, a directory, and the page.
    ['archive', 'a page', { block: 2000007 }, 3, 1],
    ['archive', 'a window of two pages', { block: 2000007, limit: 60, offset: 30 }, 3, 1],
    // Three reads: the root, and a table in each of two levels.
    ['archive', 'an unknown id', { transaction: UNKNOWN }, 3, 0],
    ['archive', 'a transaction', { transaction: TX }, 5, 1],
  ] as const)('in layout %s for %s are as few as docs/client.md says', async (layout, _, query, first, again) => {
    host.folder = at(layout);
    const mirror = new client.Mirror(host.base);
    await mirror.activity(query);
    expect(host.asked[0]).toBe(MANIFEST);
    expect(host.asked.length).toBe(1 + first);
    host.asked.length = 0;
    await mirror.activity(query);
    expect(host.asked.length).toBe(again);
  });

  it('are read once for simultaneous queries with the same signal, but not for others', async () => {
    host.folder = at('archive');
    const mirror = new client.Mirror(host.base);
    const [one, other] = [new AbortController(), new AbortController()];
    const together = async (...signals: (AbortSignal | undefined)[]) => {
      host.asked.length = 0;
      const lists = await Promise.all(signals.map((signal) => mirror.activity({ transaction: TX, signal })));
      return [host.asked.length, new Set(lists.map((list) => JSON.stringify(list))).size];
    };
    await together(undefined);
    // Reads only the page, because the first query has read all other files.
    expect(await together(one.signal, one.signal, one.signal)).toEqual([1, 1]);
    // Queries without the same signal do not share a read. In a worker, they may belong to different requests, and no request may wait for
    // another one.
    expect(await together(undefined, undefined)).toEqual([2, 1]);
    expect(await together(one.signal, other.signal, undefined)).toEqual([3, 1]);
    const left = mirror.activity({ transaction: TX, signal: one.signal });
    const right = mirror.activity({ transaction: TX, signal: other.signal });
    one.abort();
    await expect(left).rejects.toMatchObject({ name: 'AbortError' });
    expect((await right).total).toBeGreaterThan(0);
  });
});
