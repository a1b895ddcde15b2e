/**
 * Tests the page with the API's description in a real browser, under the content security policy that `npm start`
 * sends.
 */
import { createServer, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { type Listening, listening, startServer } from '../support/server.ts';
import { closeBrowser, expectAccessible, openPage, violations, visit } from './support.ts';

let host: Listening;
let proxy: Listening;
/** Base URLs of one mirror: at the root of a host, and below a path. */
const bases = { root: '', path: '' };

beforeAll(async () => {
  const out = join(temporaryFolder(), 'dist');
  await testBuild(out, { inputs: [SAMPLE_INPUT] });
  host = await startServer(out);
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
  bases.root = `${host.url}/`;
  bases.path = `${proxy.url}/some/path/`;
});

afterAll(async () => {
  await closeBrowser();
  await host.close();
  await proxy.close();
});

/**
 * Opens an operation on the page, and executes it with the examples in its fields. Returns the requested URL, the
 * status and the body.
 */
async function execute(base: string, operation: string) {
  const { page, problems, requested, close } = await openPage(`${base}docs/#/${operation}`);
  try {
    const block = page.locator(`[id="operations-${operation.replace('/', '-')}"]`);
    const button = block.locator('.execute');
    await button.waitFor();
    // Waits until Swagger UI has resolved the operation. If a click comes before, it fails, and so do all later clicks.
    await block.locator('.opblock-loading-animation').waitFor({ state: 'detached' });
    // Does not use click(), which waits for two equal frames: a busy machine may never draw them.
    await button.dispatchEvent('click');
    const answer = block.locator('.live-responses-table');
    const status = await answer.locator('tbody td.response-col_status').first().innerText();
    const body = await answer.locator('tbody .response-col_description pre').first().innerText();
    return { url: requested.at(-1), status: Number.parseInt(status, 10), body: JSON.parse(body) as unknown, problems, requested };
  } finally {
    await close();
  }
}

it.each(['root', 'path'] as const)('sends requests only to the mirror, at its %s', async (where) => {
  const base = bases[where];
  const { url, status, body, problems, requested } = await execute(base, 'Activity/listBlockActivity');
  expect({ url, status, problems }).toEqual({
    url: `${base}runes/v1/blocks/2000010/activity?offset=0&limit=20`,
    status: 200,
    problems: [],
  });
  const answer = await host.send('GET', '/runes/v1/blocks/2000010/activity?offset=0&limit=20');
  expect(body).toEqual(JSON.parse(answer.body));
  expect(requested.filter((each) => !each.startsWith(base))).toEqual([]);
  expect(requested).toContain(`${base}openapi.json`);
});

it.each([
  ['Mirror/getStatus', '/runes/v1/'],
  ['Mirror/getDigests', '/runes/v1/digests/2000000.json'],
])('executes %s with its examples', async (operation, target) => {
  const { status, body, problems } = await execute(bases.root, operation);
  expect({ status, problems }).toEqual({ status: 200, problems: [] });
  expect(body).toEqual(JSON.parse((await host.send('GET', target)).body));
});

it('lists the endpoints and then the rules, and loads the console for a selected endpoint', async () => {
  const { page, problems, requested, close } = await openPage(`${bases.path}docs/`);
  const { paths, tags } = JSON.parse((await host.send('GET', '/openapi.json')).body) as {
    paths: Record<string, { get: { tags: string[] } }>;
    tags: { name: string }[];
  };
  await page.waitForSelector('#endpoints li');
  const shown = await page.$$eval('#endpoints li a', (all) => all.map((link) => link.textContent?.replace('GET ', '')));
  expect(shown.sort()).toEqual(Object.keys(paths).sort());
  expect(await page.$$eval('#endpoints h2', (all) => all.map((one) => one.textContent))).toEqual([
    ...tags.map(({ name }) => name),
    'Rules',
  ]);
  // The text on the page must contain no Markdown.
  expect(await page.innerText('#endpoints')).toMatch(/Order: in a block the last transaction comes first.*Windows: limit and offset/);
  expect(await page.innerText('#endpoints')).not.toMatch(/`|\*\*/);
  expect(requested.filter((url) => url.includes('swagger'))).toEqual([]);
  await page.focus('#endpoints li:has-text("blocks/{block}") a');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.execute');
  expect([await page.isVisible('#endpoints'), await page.evaluate(() => location.hash)]).toEqual([false, '#/Activity/listBlockActivity']);
  await page.click('nav a:text("Endpoints")');
  await page.waitForSelector('#endpoints li');
  expect(await page.isVisible('#swagger-ui')).toBe(false);
  expect(problems).toEqual([]);
  await close();
});

it('names a part that cannot be loaded', async () => {
  const { page, close } = await openPage('about:blank');
  await page.route('**/openapi.json', (route) => route.fulfill({ status: 503, body: '' }));
  await page.route('**/swagger-ui-bundle.js', (route) => route.abort());
  await visit(page, `${bases.root}docs/`);
  expect(await page.textContent('#endpoints')).toContain('cannot be loaded (status 503)');
  await page.goto(`${bases.root}docs/#/`);
  await page.waitForSelector('#swagger-ui:has-text("cannot be loaded (swagger-ui-bundle.js is missing)")');
  await close();
});

it('the list of endpoints has no accessibility violation', async () => {
  const { page, close } = await openPage(`${bases.root}docs/`);
  await page.waitForSelector('#endpoints li');
  await expectAccessible(page);
  await close();
});

it('links back to the mirror, and to the licences', async () => {
  const { page, problems, close } = await openPage(`${bases.path}docs/`);
  expect(await page.title()).toBe('API - Rune activity mirror');
  expect(await page.getByRole('link', { name: 'Back to the mirror' }).evaluate((link: HTMLAnchorElement) => link.href)).toBe(bases.path);
  expect(problems).toEqual([]);
  await page.getByRole('link', { name: 'Its licences' }).click();
  await page.waitForURL(`${bases.path}docs/LICENSE.txt`);
  expect(await page.locator('pre').innerText()).toMatch(/SmartBear[\s\S]*Apache License[\s\S]*classnames/);
  await close();
});

/**
 * Rules of axe-core that Swagger UI breaks, which this project cannot fix. Check the list when Swagger UI is updated.
 */
const OF_SWAGGER_UI = { light: ['color-contrast'], dark: [], both: ['heading-order', 'nested-interactive', 'region', 'select-name'] };

it.each(['light', 'dark'] as const)(
  'follows the %s mode, and has no accessibility violations except those of Swagger UI',
  async (colorScheme) => {
    const { page, close } = await openPage(`${bases.root}docs/#/`, { colorScheme });
    await page.locator('.opblock').first().waitFor();
    const colour = await page.locator('.info .title').evaluate((title) => getComputedStyle(title).color);
    expect(Number(/[0-9]+/.exec(colour)?.[0]) > 127).toBe(colorScheme === 'dark');
    const rules = (await violations(page)).map((line) => line.split(':')[0]);
    expect(rules).toEqual([...OF_SWAGGER_UI[colorScheme], ...OF_SWAGGER_UI.both]);
    const own = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run(context: object): Promise<{ violations: unknown[] }> } };
      return (await axe.run({ exclude: ['#swagger-ui'] })).violations;
    });
    expect(own).toEqual([]);
    await close();
  },
);
