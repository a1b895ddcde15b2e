/**
 * Tests the client, both its source and its copy in builds. With the files of any host, it gives exactly the answers of a server of the
 * API.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, dirname, join } from 'node:path';
import handler from 'serve-handler';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../../src/contract/answerSchemas.ts';
import { manifest } from '../../src/contract/schemas.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import * as source from '../../src/serve/client/mirrorClient.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { clientIn } from '../support/builtClient.ts';
import { CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { type Listening, listening, startServer } from '../support/server.ts';

const work = temporaryFolder();
const folderOf = (layout: string, dialect: string) => join(work, `${layout}-${dialect}`);
let bundled: typeof source;

const started: Listening[] = [];
afterAll(async () => {
  for (const host of started) await host.close();
});

/** Notes a server, so that it is closed. */
async function kept(starting: Promise<Listening>): Promise<Listening> {
  const host = await starting;
  started.push(host);
  return host;
}

/** Starts the local server, which answers exactly like the API. */
const startExact = (folder: string) => kept(startServer(folder));

/** Starts a static file server with the settings of hosting/files-only. */
async function startFilesOnly(folder: string): Promise<string> {
  const config = JSON.parse(readFileSync(join(ROOT, 'hosting/files-only/serve.json'), 'utf8')) as Parameters<typeof handler>[2];
  return (await kept(listening(createServer((request, response) => handler(request, response, { ...config, public: folder }))))).url;
}

/** Kinds of hosts. Each function returns the URL of a build's folder on that host. */
const HOSTS = {
  'npm start': async (folder: string) => (await startExact(folder)).url,
  'a host of files alone': startFilesOnly,
  'a folder of a host of files alone': async (folder: string) => `${await startFilesOnly(dirname(folder))}/${basename(folder)}/`,
};

beforeAll(async () => {
  for (const layout of LAYOUTS) {
    for (const dialect of DIALECTS) {
      await testBuild(folderOf(layout, dialect), { inputs: [SAMPLE_INPUT], layout, dialect });
    }
  }
  bundled = await clientIn(folderOf('files', 'hiro'));
});

const gets = CASES.filter(({ method = 'GET' }) => method === 'GET');
// Combinations that cover every host, every layout and every dialect.
const COMBINATIONS = [
  ['npm start', 'files', 'contract'],
  ['npm start', 'archive', 'hiro'],
  ['a host of files alone', 'files', 'hiro'],
  ['a host of files alone', 'archive', 'contract'],
  ['a folder of a host of files alone', 'archive', 'hiro'],
] as const;

describe.each(COMBINATIONS)('from the files of %s, in layout %s and dialect %s,', (name, layout, dialect) => {
  const folder = folderOf(layout, dialect);
  let base: string;
  let exact: Listening;
  beforeAll(async () => {
    base = await HOSTS[name](folder);
    exact = await startExact(folder);
  });

  it('answers every GET of the case table like a server of the API, byte for byte', async () => {
    expect(gets.length).toBeGreaterThan(45);
    for (const { Mirror } of [source, bundled]) {
      const mirror = new Mirror(base);
      for (const { target, status, ...rest } of gets) {
        const { body } = await exact.send('GET', target);
        expect([target, await mirror.get(target)]).toEqual([target, { status, body }]);
        if (typeof rest.body === 'string' && dialect === 'contract') expect(body).toBe(rest.body);
      }
    }
  });

  it('answers a query like the same request, and refuses it with the same message', async () => {
    const TX = 'a1b3a92c17a005483322cf807b73bc9f7ec2977867cf5cbaec18754b900bf6bb';
    const queries: [Omit<source.ActivityQuery, 'base'>, string][] = [
      [{ block: 2000007 }, 'blocks/2000007/activity'],
      [{ block: '2000007', limit: 60, offset: 30 }, 'blocks/2000007/activity?offset=30&limit=60'],
      [{ block: 2000007, operation: 'send', limit: 7 }, 'blocks/2000007/activity?limit=7&operation_type=send'],
      [{ transaction: `0x${TX}`, offset: 3, limit: 5 }, `transactions/${TX}/activity?offset=3&limit=5`],
      [{ transaction: 'ff'.repeat(32) }, `transactions/${'ff'.repeat(32)}/activity`],
      [{ block: 1 }, 'blocks/1/activity'],
    ];
    for (const [query, target] of queries) {
      const page = await bundled.activity({ base, ...query });
      expect(envelope(dialect).parse(page)).toEqual(JSON.parse((await exact.send('GET', `/runes/v1/${target}`)).body));
    }
    const refused: [Omit<source.ActivityQuery, 'base'>, string][] = [
      [{ block: 'a/../b?c=%zz#\ud800' }, 'blocks/x/activity'],
      [{ transaction: '' }, 'transactions//activity'],
      [{ block: 1, limit: 61 }, 'blocks/1/activity?limit=61'],
      [{ block: 1, limit: Number.NaN }, 'blocks/1/activity?limit=NaN'],
      [{ block: 1, offset: -1 }, 'blocks/1/activity?offset=-1'],
      [{ block: 1, operation: 'steal&limit=1' as 'send' }, 'blocks/1/activity?operation_type=steal'],
    ];
    for (const [query, target] of refused) {
      const { message, ...rest } = JSON.parse((await exact.send('GET', `/runes/v1/${target}`)).body) as { message: string };
      const error = await bundled.activity({ base, ...query }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(bundled.MirrorError);
      expect({ ...(error as source.MirrorError), message: (error as Error).message }).toEqual({
        ...rest,
        message,
        name: 'MirrorError',
      });
    }
  });

  it('returns the manifest of the mirror', async () => {
    const found = await new bundled.Mirror(base).manifest();
    expect(manifest.parse(found)).toEqual(JSON.parse(readFileSync(join(folder, 'runes/v1/manifest.json'), 'utf8')));
    expect(found).toMatchObject({ layout, dialect });
  });
});

describe('a base URL', () => {
  let port: number;
  beforeAll(async () => {
    port = (await startExact(folderOf('files', 'contract'))).port;
  });

  it('may end with a slash, be a URL, and have a query and a fragment', async () => {
    for (const end of ['', '/', '?a=b', '/#c']) {
      const base = `http://127.0.0.1:${port}${end}`;
      for (const each of [base, new URL(base)]) expect((await bundled.activity({ base: each, block: 2000007 })).total).toBe(437);
    }
  });

  it('that is invalid throws a TypeError, and so does a query for no list or for two', async () => {
    expect(() => new bundled.Mirror('mirror')).toThrow(new TypeError('mirror is not a valid base URL, such as https://example.org/mirror'));
    const base = `http://127.0.0.1:${port}`;
    for (const query of [{ base: 'mirror', block: 1 }, { base }, { base, block: 1, transaction: '1' }]) {
      await expect(bundled.activity(query)).rejects.toThrow(TypeError);
    }
  });

  it('with a malformed option or argument causes a TypeError that names it', async () => {
    const base = `http://127.0.0.1:${port}`;
    const options = { timeoutMs: Number.NaN, freshMs: '5', maxAge: -1, keys: 'a+00000000+b', remember: {} };
    for (const [name, value] of Object.entries(options)) {
      const open = () => new bundled.Mirror(base, { [name]: value } as never);
      expect(open).toThrow(TypeError);
      expect(open).toThrow(`${name} must `);
    }
    const mirror = new bundled.Mirror(base);
    const none = undefined as never;
    await expect(mirror.balances(none)).rejects.toThrow(new TypeError('address must be a text or a number, not undefined'));
    await expect(mirror.etching(none)).rejects.toThrow(new TypeError('rune must be a text or a number, not undefined'));
    await expect(mirror.classify(none)).rejects.toThrow(new TypeError('outputs must be a list'));
    for (const key of ['a+00000000+b', 'PRIVATE+KEY+a+00000000+c2VjcmV0']) {
      const answer: Promise<unknown> = new bundled.Mirror(base, { keys: [key] }).etchings();
      const error = await answer.catch((reason: unknown) => reason);
      expect([error instanceof TypeError, String(error)]).toEqual([true, expect.stringMatching(/keys: .* is not a public key/)]);
      expect(String(error)).not.toContain('c2VjcmV0');
    }
  });

  it('without a mirror gives an error, not an empty list', async () => {
    const base = `http://127.0.0.1:${port}/runes/v1`;
    await expect(bundled.activity({ base, block: 2000007 })).rejects.toThrow(
      `no mirror found at ${base}/: runes/v1/manifest.json is missing. The base is the URL before /runes/v1`,
    );
  });
});
