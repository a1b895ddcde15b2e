/**
 * Tests the promises of SECURITY.md for every answer of the local server, over real sockets. Also checks that the tests in its list of
 * threats exist.
 */
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerFromLists } from '../../src/lists/answers.ts';
import { type Files, MissingFileError, type OpenFile } from '../../src/pages/fileAccess.ts';
import { LAYOUTS, siteOf } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { diskFiles } from '../support/archives.ts';
import { filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { sendRaw } from '../support/raw.ts';
import { recordedOutput } from '../support/recorded.ts';
import { words } from '../support/records.ts';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const work = temporaryFolder();
const dist = join(work, 'dist');
const BLOCK = '/runes/v1/blocks/2000007/activity';
let host: LocalHost;

beforeAll(async () => {
  writeFileSync(join(work, 'secret.json'), '{"secret":1}');
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  host = await startServer(dist);
});

afterAll(() => host.close());

const get = (target: string, more = '') =>
  sendRaw(host.port, Buffer.from(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${more}\r\n`, 'latin1'));
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(answer)?.[1]);
const bodyOf = (answer: string) => Buffer.from(answer.slice(answer.indexOf('\r\n\r\n') + 4), 'latin1').toString('utf8');

describe('SECURITY.md', () => {
  it('names at least one test for each threat, and only tests that exist', () => {
    const text = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
    const threats = text.slice(text.indexOf('## Threats')).split('\n- ').slice(1);
    expect(threats.length).toBeGreaterThan(15);
    // In SECURITY.md, a threat ends with the names of its tests in parentheses.
    const testsOf = (threat: string) =>
      [...(/\(([^()]*)\)\.\s*$/.exec(threat)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    expect(threats.filter((threat) => testsOf(threat).length === 0)).toEqual([]);
    const tests = filesBelow(join(ROOT, 'test')).map((path) => `/${path}`);
    expect(threats.flatMap(testsOf).filter((name) => !tests.some((path) => path.endsWith(`/${name}.test.ts`)))).toEqual([]);
  });
});

/** Spellings of `..`, and strange names. The tests insert them into paths. */
const SPELLINGS = words(`
    ../ ..%2f ..%2F %2e%2e/ %2e%2e%2f .%2e/ %252e%252e%252f ..%252f ..\\ ..%5c %2e%2e%5c ..%c0%af %c0%ae%c0%ae/ ..%e0%80%af
    %e0%80%ae%e0%80%ae/ ..;/ ..%00/ %00 ..%0d%0a/ ....// ./../ // /C:/ C:%5c \xe4\xff/ %u002e%u002e/ ..%ff/
  `);
const STARTS = ['/', '/runes/', '/runes/v1/', '/runes/v1/blocks/', '/runes/v1/transactions/', '/runes/v1/blocks/2000007/'];
const ENDS = ['secret.json', 'secret.json/activity', 'etc/passwd', 'activity', '%2fetc%2fpasswd', ''];

describe('a path out of the folder', () => {
  it('gets an answer of the API, a 400 or a 404 in every spelling, and no other file', async () => {
    const wrong: string[] = [];
    for (const start of STARTS) {
      for (const spelling of SPELLINGS) {
        const targets = ENDS.map((end) => start + spelling.repeat(4) + end);
        const answers = await Promise.all(targets.map((target) => get(target)));
        for (const [i, answer] of answers.entries()) {
          const [status, body] = [statusOf(answer), bodyOf(answer)];
          const isJson = answer.includes('\r\ncontent-type: application/json; charset=utf-8\r\n') && JSON.parse(body) !== undefined;
          const isFine =
            isJson && (status === 200 ? body.startsWith('{"limit":') || body.includes('server_version') : [400, 404].includes(status));
          if (!isFine || /secret":1|root:/.test(body) || body.includes(work)) wrong.push(`${targets[i]}: ${answer.slice(0, 300)}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('as a full URL, another scheme or an authority is refused', async () => {
    for (const target of words(`
        http://x/../secret.json http://x/..%2fsecret.json http://../secret.json file:///etc/passwd file:///../secret.json
        http://x//secret.json //secret.json ///etc/passwd secret.json ../secret.json *
      `)) {
      const answer = await get(target);
      expect([target, [400, 404].includes(statusOf(answer)), answer.includes('secret":1')]).toEqual([target, true, false]);
      expect(JSON.parse(bodyOf(answer))).toMatchObject({ statusCode: statusOf(answer) });
    }
  });

  it('never becomes the path of a file', async () => {
    const asked: string[] = [];
    for (const layout of LAYOUTS) {
      const out = await recordedOutput(layout, 'contract');
      const site = siteOf(JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')));
      const files = diskFiles(out);
      const source: Files<OpenFile> = {
        open: (path) => Promise.resolve(void asked.push(path)).then(() => undefined),
        read: (path, offset, length, size) => {
          asked.push(path);
          return files.read(path, offset, length, size);
        },
        inflate: files.inflate,
      };
      for (const start of STARTS) {
        for (const spelling of SPELLINGS) {
          for (const end of ENDS) {
            await respond(start + spelling + end, site, source, answerFromLists).catch((error: unknown) => {
              expect(error).toBeInstanceOf(MissingFileError);
            });
          }
        }
      }
      // Valid ids must lead to reads of files. Otherwise this test could never find a read outside of the folder.
      for (const id of ['blocks/840000', `blocks/${'9'.repeat(64)}`, `transactions/${'9'.repeat(64)}`]) {
        const before = asked.length;
        await respond(`/runes/v1/${id}/activity?operation_type=mint&limit=60`, site, source, answerFromLists);
        expect(asked.length).toBeGreaterThan(before);
      }
    }
    expect(
      asked.filter(
        (path) =>
          !/^(?:runes\/v1\/(?:index|(?:blocks|transactions)\/[0-9a-fx]+(?:\/(?:[a-z]+|[0-9]+(?:\/[0-9]+)?))*)\.json|archive\/[0-9a-f]{64}\.bin)$/.test(
            path,
          ),
      ),
    ).toEqual([]);
  });

  it('with very long or thousands of segments gets a 404', async () => {
    for (const path of [
      `/${'a'.repeat(12_000)}`,
      `/runes/v1/${'a/'.repeat(6000)}`,
      `/${'../'.repeat(4000)}`,
      `/${'%2e%2e%2f'.repeat(1000)}`,
    ]) {
      const answer = await get(path);
      expect([statusOf(answer), bodyOf(answer).length < 1000]).toEqual([404, true]);
    }
  });
});

describe('links in the folder', () => {
  let own: LocalHost;
  const out = join(work, 'linked');
  const at = (path: string) => join(out, path);
  beforeAll(async () => {
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    const foreign = join(work, 'foreign');
    await testBuild(foreign, { inputs: [SAMPLE_INPUT] });
    const links = { 'openapi.json': join(work, 'secret.json'), docs: join(foreign, 'docs'), 'lists.js': at('index.html') };
    for (const path of ['runes/v1/blocks/2000007/60', 'runes/v1/blocks/2000004.json', 'proofs.js', 'client.js', ...Object.keys(links)])
      renameSync(at(path), `${at(path)}.away`);
    for (const path of ['runes/v1/blocks/2000007/60', 'runes/v1/blocks/2000004.json']) symlinkSync(join(foreign, path), at(path));
    for (const [path, to] of Object.entries(links)) symlinkSync(to, at(path));
    linkSync(at('index.html'), at('proofs.js'));
    mkdirSync(at('runes/v1/blocks/7.json'));
    execFileSync('mkfifo', [at('runes/v1/blocks/8.json'), at('client.js')]);
    // This clock makes the files old enough for the cache.
    own = await startServer(out, { now: () => Date.now() + 1000 });
  });
  afterAll(() => own.close());

  it('out of the folder are a 404 as files, and a 503 as pages of the API', async () => {
    for (const target of ['/openapi.json', '/docs/index.html', '/runes/v1/blocks/2000004.json', '/runes/v1/blocks/2000007/60/0.json']) {
      const { status, body } = await own.send('GET', target);
      expect([target, status, JSON.parse(body)]).toEqual([
        target,
        404,
        { statusCode: 404, error: 'Not Found', message: `Route GET:${target} not found` },
      ]);
    }
    for (const target of ['/runes/v1/blocks/2000004/activity', `${BLOCK}?limit=60`, `${BLOCK}?limit=60&offset=30`]) {
      const { status, body } = await own.send('GET', target);
      expect([target, status, body.includes(work)]).toEqual([target, 503, false]);
    }
  });

  it('and folders and pipes in place of a file do not block the server', async () => {
    for (const height of [7, 8]) expect((await own.send('GET', `/runes/v1/blocks/${height}/activity`)).status).toBe(503);
    for (const path of ['/client.js', '/runes/v1/blocks/7.json']) expect((await own.send('GET', path)).status).toBe(404);
  });

  it('that stay inside, and hard links, are served', async () => {
    const page = readFileSync(at('index.html'), 'utf8');
    for (const path of ['/lists.js', '/proofs.js', '/']) expect(await own.send('GET', path)).toMatchObject({ status: 200, body: page });
    const byHash = await own.send('GET', '/runes/v1/blocks/0x00000000f00d99dccc32c5291d13d871e27d9906c810b4257e859132e49b8cc3/activity');
    expect(byHash.body).toBe((await own.send('GET', BLOCK)).body);
  });

  it('that appear while the server runs are noticed, also for cached files', async () => {
    const path = 'runes/v1/blocks/2000006.json';
    const target = '/runes/v1/blocks/2000006/activity';
    for (let i = 0; i < 2; i += 1) expect((await own.send('GET', target)).status).toBe(200);
    renameSync(at(path), `${at(path)}.away`);
    symlinkSync(join(work, 'secret.json'), at(path));
    expect((await own.send('GET', target)).status).toBe(503);
  });

  it('to the folder itself may be switched to another build', async () => {
    const current = join(work, 'current');
    symlinkSync(dist, current);
    const turned = await startServer(current);
    const before = await turned.send('GET', BLOCK);
    await testBuild(join(work, 'other'), { inputs: [SAMPLE_INPUT], dialect: 'hiro' });
    symlinkSync(join(work, 'other'), `${current}.new`);
    renameSync(`${current}.new`, current);
    const after = await turned.send('GET', BLOCK);
    expect([before.status, after.status, before.body.includes('"0x'), after.body.includes('"0x')]).toEqual([200, 200, true, false]);
    await turned.close();
  });
});

describe('headers', () => {
  it('cannot be injected by a request', async () => {
    for (const target of [
      '/%0d%0ax-evil:%201',
      '/runes/v1/%0d%0a%0d%0a<script>',
      `${BLOCK}?limit=%0d%0ax-evil:%201`,
      '/a%0ax-evil:%201',
      '/%E5%98%8A%E5%98%8Dx-evil:1',
    ]) {
      const answer = await get(target, 'x-echo: a\r\n');
      expect([target, statusOf(answer)]).toEqual([target, target.startsWith(BLOCK) ? 400 : 404]);
      expect(answer).not.toMatch(/^x-(?:evil|echo)/im);
    }
    // The HTTP parser itself refuses bare line ends, and spaces before the colon of a header.
    for (const text of [
      'GET /a\rb HTTP/1.1\r\nhost: x\r\n\r\n',
      'GET / HTTP/1.1\r\nhost: x\r\nx-a : b\r\n\r\n',
      'GET / HTTP/1.1\r\nhost: x\r\nx-a: b\0c\r\n\r\n',
      'GET / HTTP/1.1\nhost: x\n folded\n\n',
    ]) {
      const answer = await sendRaw(host.port, text);
      expect([text, statusOf(answer), JSON.parse(bodyOf(answer))]).toMatchObject([text, 400, { statusCode: 400 }]);
    }
  });

  it('for browsers are those of SECURITY.md on every answer', async () => {
    for (const [method, target, status] of [
      ['GET', BLOCK, 200],
      ['HEAD', BLOCK, 200],
      ['GET', `${BLOCK}?limit=3&offset=2`, 200],
      ['GET', `${BLOCK}?limit=0`, 400],
      ['GET', '/nothing', 404],
      ['POST', BLOCK, 405],
      ['GET', '/runes/v1/manifest.json', 200],
    ] as const) {
      expect(await host.send(method, target)).toMatchObject({ status, headers: SECURITY_HEADERS.json });
    }
    const { etag } = (await host.send('GET', BLOCK)).headers;
    const { 'content-type': _, ...others } = SECURITY_HEADERS.json;
    expect(await host.send('GET', BLOCK, { 'if-none-match': String(etag) })).toMatchObject({ status: 304, headers: others });
    expect(await host.send('GET', '/')).toMatchObject({ status: 200, headers: SECURITY_HEADERS.page });
    for (const text of ['nonsense\r\n\r\n', `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`]) {
      const answer = (await sendRaw(host.port, text)).toLowerCase();
      for (const [name, value] of Object.entries(SECURITY_HEADERS.json))
        expect(answer).toContain(`\r\n${name}: ${value.toLowerCase()}\r\n`);
    }
  });

  it('let every site read, but not with credentials or into a private network', async () => {
    const asked = {
      origin: 'https://a.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'x-any, etag',
      'access-control-request-private-network': 'true',
    };
    const preflight = await host.send('OPTIONS', BLOCK, asked);
    expect(preflight).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': '*',
        'access-control-allow-headers': '*',
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
      },
    });
    const answer = await host.send('GET', BLOCK, { origin: 'https://a.example', cookie: 'a=b', authorization: 'Basic eDp5' });
    expect([answer.status, answer.headers['set-cookie']]).toEqual([200, undefined]);
    for (const { headers } of [preflight, answer]) {
      expect([headers['access-control-allow-credentials'], headers['access-control-allow-private-network']]).toEqual([
        undefined,
        undefined,
      ]);
    }
  });
});

describe('an error', () => {
  it('that repeats the request is JSON for any request', async () => {
    for (const part of [
      ...words(`
        </script><script>alert(1)</script> "\\ %22%5c %E2%80%A8 \xe2\x80\xa8 %ED%A0%80 \xed\xa0\x80 %ff%fe \xff\xfe %EF%BB%BF
        %24%7B7*7%7D
      `),
      "'",
      '%00',
    ]) {
      const answer = await get(`/${part}`);
      const body = JSON.parse(bodyOf(answer)) as { message: string };
      // The HTTP parser itself refuses bytes outside of ASCII.
      const status = /[\x80-\xff]/.test(part) ? 400 : 404;
      expect([part, statusOf(answer), Object.keys(body)]).toEqual([part, status, ['statusCode', 'error', 'message']]);
      expect(answer).toMatch(/content-type: application\/json; charset=utf-8\r\n[\s\S]*x-content-type-options: nosniff\r\n/);
      expect(Number(/content-length: ([0-9]+)/.exec(answer)?.[1])).toBe(Buffer.byteLength(bodyOf(answer)));
    }
  });

  it('names no path of the machine, and hidden files and listings get a 404', async () => {
    for (const path of words(`
        /.rune-activity-mirror /.git/config /runes/.hidden /runes/v1/ /runes/v1/blocks /runes/v1/blocks/ /runes/v1/manifest.json/
        /runes/v1/manifest.json/x /%2erune-activity-mirror
      `)) {
      const { status, body } = await host.send('GET', path);
      expect([path, status]).toEqual([path, path === '/runes/v1/' ? 200 : 404]);
      expect([body.includes(work), body.includes('src/'), body.includes('node:')]).toEqual([false, false, false]);
    }
  });
});

describe('requests that could be smuggled', () => {
  it('with two lengths, or a length and chunks, are refused', async () => {
    for (const [headers, body] of [
      ['content-length: 5\r\ntransfer-encoding: chunked', '0\r\n\r\nGET /x HTTP/1.1\r\nhost: x\r\n\r\n'],
      ['content-length: 5\r\ncontent-length: 6', 'abcdef'],
      ['transfer-encoding: xchunked', '0\r\n\r\n'],
      ['transfer-encoding: chunked', 'zz\r\n\r\n'],
      ['content-length: -1', ''],
      ['content-length: +5', 'abcde'],
    ]) {
      const answer = await sendRaw(host.port, `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n\r\n${body}`);
      expect([headers, answer.includes('HTTP/1.1 400 '), answer.includes('Route GET:/x')]).toEqual([headers, true, false]);
    }
  });

  it('of HTTP/1.0 are answered and closed, and those of HTTP/1.1 without a host refused', async () => {
    expect(await sendRaw(host.port, `GET ${BLOCK} HTTP/1.0\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n[\s\S]*"total":437/i,
    );
    expect(statusOf(await sendRaw(host.port, `GET ${BLOCK} HTTP/1.1\r\n\r\n`))).toBe(400);
  });
});
