/** Tests the page with the API's description in a real browser, under the content security policy that `npm start` sends. */
import { createServer, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { type Listening, type LocalHost, listening } from '../support/server.ts';
import { expectAccessible } from './support.ts';
import { usePages } from './usePages.ts';

const { open, serve } = usePages();
let host: LocalHost;
let proxy: Listening;
/** Base URLs of one mirror: at the root of a host, and below a path. */
const bases = { root: '', path: '' };

beforeAll(async () => {
  const out = join(temporaryFolder(), 'dist');
  await testBuild(out, { inputs: [SAMPLE_INPUT] });
  host = await serve(out);
  // The proxy serves the mirror below a path, as some operators do.
  const forwarder = createServer(({ method, url = '', headers }, response) => {
    if (!url.startsWith('/some/path/')) return void response.writeHead(404).end();
    const path = url.slice('/some/path'.length);
    const forward = (answer: IncomingMessage) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    };
    return void request({ host: '127.0.0.1', port: host.port, method, path, headers }, forward).end();
  });
  proxy = await listening(forwarder);
  bases.root = `http://127.0.0.1:${host.port}/`;
  bases.path = `${proxy.url}/some/path/`;
});

afterAll(() => proxy.close());

/** Shows the answer of an endpoint on an open page, and returns its text. */
async function answerOf(page: Page, operation: string): Promise<string> {
  await page.click(`#${operation} summary`);
  await page.waitForFunction((id) => document.querySelector(`#${id} pre`)?.textContent !== '', operation);
  return (await page.textContent(`#${operation} pre`)) ?? '';
}

it.each(['root', 'path'] as const)('shows answers of this mirror, which is at the %s of its host', async (where) => {
  const base = bases[where];
  const { page, problems, requested } = await open(`${base}docs/`);
  for (const [operation, target] of [
    ['listBlockActivity', 'runes/v1/blocks/2000010/activity'],
    ['getStatus', 'runes/v1/'],
    ['getDigests', 'runes/v1/digests/2000000.json'],
  ] as const) {
    const answer = JSON.stringify(JSON.parse((await host.send('GET', `/${target}`)).body), null, 2);
    const shown = answer.length > 6000 ? `${answer.slice(0, 6000)}\n…` : answer;
    expect(await answerOf(page, operation)).toBe(`200 OK\n${shown}`);
    expect(await page.getAttribute(`#${operation} a`, 'href')).toBe(`../${target}`);
    expect(requested.at(-1)).toBe(`${base}${target}`);
  }
  expect(requested.filter((each) => !each.startsWith(base) && !each.startsWith('data:'))).toEqual([]);
  expect(problems).toEqual([]);
  expect(await answerOf(page, 'listHolders')).toMatch(/^501 Not Implemented\n.*"message": "this mirror does not have holders/s);
  await page.click('nav a:text("API")');
  expect(page.url()).toBe(`${base}docs/`);
  await page.click('.brand');
  await page.waitForURL(base);
});

it('says why an answer cannot be shown', async () => {
  const { page } = await open(`${bases.root}docs/`);
  await page.route('**/runes/v1/', (route) => route.abort());
  expect(await answerOf(page, 'getStatus')).toContain('cannot be loaded (');
  await page.route('**/activity', (route) => route.fulfill({ status: 404, contentType: 'text/html', body: '' }));
  expect(await answerOf(page, 'listBlockActivity')).toContain('404 Not Found: this host has only files');
});

it('has the endpoints with their parameters, and then the rules, also without scripts', async () => {
  const { page, problems } = await open(`${bases.path}docs/`, { javaScriptEnabled: false });
  const { paths, tags } = JSON.parse((await host.send('GET', '/openapi.json')).body) as {
    paths: Record<string, { get: { operationId: string; parameters?: unknown[] } }>;
    tags: { name: string }[];
  };
  const shown = await page.$$eval('main article', (all) =>
    all.map((one) => [one.querySelector('h3')?.textContent?.replace('GET ', ''), one.id, one.querySelectorAll('dt').length]),
  );
  const described = Object.entries(paths).map(([path, { get }]) => [path, get.operationId, get.parameters?.length ?? 0]);
  expect(shown.sort()).toEqual(described.sort());
  expect(await page.$$eval('h2', (all) => all.map((one) => one.textContent))).toEqual([...tags.map(({ name }) => name), 'Rules']);
  // The text on the page must contain no Markdown.
  expect(await page.innerText('main')).toMatch(/Order: in a block the last transaction comes first.*Windows: limit and offset/);
  expect(await page.innerText('main')).not.toMatch(/`|\*\*/);
  expect([await page.title(), await page.isVisible('summary')]).toEqual(['API · Rune activity mirror', false]);
  expect(problems).toEqual([]);
});

it('has no accessibility violation, and its background follows the mode', async () => {
  const { page } = await open(`${bases.root}docs/`);
  await answerOf(page, 'getStatus');
  await expectAccessible(page);
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(19, 20, 26)');
});
