/** Tests the client module with keys in a browser, where WebCrypto checks signatures and files. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeKey, parseSigningKey } from '../../src/output/signingKeys.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { holder, runeInput } from './runeMirror.ts';
import { closeBrowser, type OpenPage, openPage } from './support.ts';

const [KEY, OTHER] = [1, 2].map((byte) => makeKey('mirror.example.org', Buffer.alloc(32, byte))) as [
  ReturnType<typeof makeKey>,
  ReturnType<typeof makeKey>,
];
const TARGETS = [
  'etchings?limit=3',
  'etchings/DOGGOTOTHEMOON/holders?limit=5',
  `addresses/${holder(3)}/balances`,
  'blocks/840000/activity?limit=7',
  'etchings/NOSUCHRUNE',
  'addresses/nobody/activity',
];
let host: LocalHost;
let opened: OpenPage;

beforeAll(async () => {
  const work = temporaryFolder();
  writeFiles(work, Object.fromEntries(Object.entries(runeInput()).map(([path, text]) => [`input/${path}`, text])));
  const keys = [parseSigningKey(KEY.privateText, 'the test')];
  await testBuild(join(work, 'out'), { inputs: [join(work, 'input')], layout: 'archive', lists: true, keys });
  host = await startServer(join(work, 'out'));
  opened = await openPage(`http://127.0.0.1:${host.port}/`);
});
afterAll(async () => {
  await opened.close();
  await closeBrowser();
  await host.close();
});

/** Returns the client's answers to all targets. If the client throws, the answer is the message of the error. */
const answers = (options: string): Promise<readonly string[]> =>
  opened.page.evaluate(`(async () => {
    const { Mirror } = await import('/client.js');
    const mirror = new Mirror('/', ${options});
    return Promise.all(${JSON.stringify(TARGETS)}.map((target) =>
      mirror.get('/runes/v1/' + target).then(({ status, body }) => status + ' ' + body, ({ message }) => message)));
  })()`);

it('gives the answers of the API, and loads the code for keys only with keys', async () => {
  const isLoaded = () => opened.requested.some((url) => url.endsWith('/proofs.js'));
  const expected = await Promise.all(TARGETS.map((target) => host.send('GET', `/runes/v1/${target}`)));
  const bodies = expected.map(({ status, body }) => `${status} ${body}`);
  expect(await answers('{}')).toEqual(bodies);
  expect(isLoaded()).toBe(false);
  expect(await answers(JSON.stringify({ keys: [KEY.publicText], maxAge: 3_600_000 }))).toEqual(bodies);
  expect(isLoaded()).toBe(true);
});

it('refuses a mirror that is signed with another key', async () => {
  for (const answer of await answers(JSON.stringify({ keys: [OTHER.publicText] })))
    expect(answer).toMatch(/^the note is not signed by a key that you trust, but by mirror[.]example[.]org[+]/);
});
