/** Tests look-ups in the explorer: which texts it accepts, and its messages if nothing is found or a request fails. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { copyOf } from '../support/outputs.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { listOf, lookUp, rowOf, rowsOf, settled, told } from './explorer.ts';
import { type OpenPage, quiet, visit } from './support.ts';
import { usePages } from './usePages.ts';

const dist = join(temporaryFolder(), 'dist');
const TX = 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375';
const HASH = '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5';
const UNKNOWN = `1${TX.slice(1)}`;
let host: LocalHost;
const { open, serve } = usePages();

/** Opens a page of the mirror. The page is closed after the test. */
const openAt = (search = '', at = host): Promise<OpenPage> => open(`http://127.0.0.1:${at.port}/${search}`);

beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  host = await serve(dist);
});

it('an address with a wrong checksum is told on its page, too', async () => {
  const { page } = await openAt('?address=bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdz');
  expect(await page.textContent('#query-problem')).toMatch(/checksum of this address is wrong/);
  expect(await page.getAttribute('#query', 'aria-invalid')).toBe('true');
  await lookUp(page, 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq');
  expect(await page.textContent('#query-problem')).toBe('');
});

describe('a look-up', () => {
  it.each([
    ['a height', '840000', 'Block 840,000', 'blocks/840000'],
    ['a block hash with 0x', `0x${HASH}`, 'Block 840,000', 'blocks/840000'],
    ['the URL of another explorer', `https://mempool.space/tx/${TX}`, 'Transaction', `transactions/${TX}`],
  ])('of %s shows its first records', async (_, text, heading, path) => {
    const { page, problems } = await openAt();
    await lookUp(page, text);
    expect(await page.textContent('h1:visible')).toBe(heading);
    const kind = path.startsWith('blocks') ? 'block' : 'transaction';
    expect(told(await rowsOf(page))).toEqual(told((await listOf(host, path)).slice(0, 20).map((one) => rowOf(one, kind))));
    expect(await page.title()).toContain(heading);
    expect(problems).toEqual([]);
  });

  it('of a name does not replace the newer view of somebody who did not wait for it', async () => {
    const { page } = await openAt();
    let answer = () => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/runes/v1/search/**', async (route) => {
      await held;
      await route.continue();
    });
    const asked = page.waitForRequest('**/runes/v1/search/**');
    // This page requests nothing but names, so that nothing but its end can keep a late one from being shown.
    await page.goto(new URL('?runes=dog', page.url()).href, { waitUntil: 'commit' });
    await asked;
    expect(await page.getAttribute('#view', 'aria-busy')).toBe('true');
    await lookUp(page, '840000');
    const answered = page.waitForResponse('**/runes/v1/search/**');
    answer();
    await (await answered).finished();
    await quiet(page);
    expect(await page.textContent('h1:visible')).toBe('Block 840,000');
    expect(await page.title()).toBe('Block 840,000 · Rune activity mirror');
  });

  it('of the latest block shows the highest', async () => {
    const { page, problems } = await openAt('?block=latest');
    expect(await page.textContent('h1:visible')).toBe('Block 2,000,010');
    expect(told(await rowsOf(page))).toEqual(told((await listOf(host, 'blocks/2000010')).map((one) => rowOf(one, 'block'))));
    expect(problems).toEqual([]);
  });

  it('of a transaction names its block and its time', async () => {
    const { page } = await openAt(`?tx=${TX}`);
    expect(await page.textContent('.facts')).toMatch(/Block840,000, position 3.*Time.* ago 2024-04-20 00:09:27 UTC/);
    expect(await page.getAttribute('.facts time', 'datetime')).toBe('2024-04-20T00:09:27Z');
  });

  it.each([
    ['words', '<b>doge</b>', /neither/],
    ['an address with a wrong letter', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdz', /checksum .* wrong.*Look it up anyway/],
  ])('of %s shows an explanation and changes nothing', async (_, text, words) => {
    const { page, problems, requested } = await openAt();
    const before = requested.length;
    await lookUp(page, text);
    expect(await page.textContent('#query-problem')).toMatch(words);
    expect(await page.getAttribute('#query', 'aria-invalid')).toBe('true');
    expect(new URL(page.url()).search).toBe('');
    await page.type('#query', '1');
    expect(await page.textContent('#query-problem')).toBe('');
    expect([requested.length, problems]).toEqual([before, []]);
  });

  it('of an unknown id says so, shows the heights of the mirror, and offers to look up the other kind of id', async () => {
    const { page, problems } = await openAt();
    await lookUp(page, UNKNOWN);
    expect(await page.textContent('#view')).toContain(`no rune activity of transaction ${UNKNOWN}`);
    expect(await page.textContent('#view')).toContain('840,000, 2,000,001 to 2,000,004 and 2,000,006 to 2,000,010');
    await page.click('text=Look for a block with this id');
    await settled(page);
    expect(new URL(page.url()).search).toBe(`?block=${UNKNOWN}`);
    expect(await page.textContent('#view')).toContain(`no rune activity of block ${UNKNOWN}`);
    expect(await page.textContent('#view')).toContain('Look for a transaction with this id');
    expect(await page.$$eval('#view a[rel=noreferrer]', (all) => all.map((one) => one.getAttribute('href')))).toEqual([
      `https://mempool.space/block/${UNKNOWN}`,
      `https://ordinals.com/block/${UNKNOWN}`,
    ]);
    // The only problems are the 404 answers for missing files.
    expect(problems.filter((text) => !text.includes('404'))).toEqual([]);
  });

  it('of a height without activity says so', async () => {
    const { page } = await openAt('?block=2000005');
    expect(await page.textContent('#view')).toContain('no rune activity of block 2000005');
    expect(await page.locator('text=Look for a').count()).toBe(0);
    expect(await page.textContent('#view')).toContain('Nearest with activity: 2,000,004 2,000,006');
    await visit(page, `http://127.0.0.1:${host.port}/?block=2000100`);
    expect(await page.textContent('#view')).toContain('Its highest block is 2,000,010. Newer blocks come with its next build.');
    await page.click('#view a:text("2,000,010")');
    await settled(page);
    expect(await page.textContent('h1:visible')).toBe('Block 2,000,010');
  });

  it('of an invalid link shows an explanation', async () => {
    const { page } = await openAt('?tx=840000');
    expect(await page.textContent('#view')).toContain('64 hex digits');
    await page.click('text=Show block 840000');
    await settled(page);
    expect(await page.textContent('h1:visible')).toBe('Block 840,000');
  });

  it('is replaced by a later look-up', async () => {
    const { page, problems } = await openAt();
    await page.fill('#query', '2000007');
    await page.press('#query', 'Enter');
    await page.fill('#query', '840000');
    await page.press('#query', 'Enter');
    await settled(page);
    await quiet(page);
    expect(await page.textContent('h1:visible')).toBe('Block 840,000');
    expect(problems).toEqual([]);
  });
});

describe('an error', () => {
  it("of the API is shown with the API's message", async () => {
    const { page } = await openAt('?block=840000&limit=1000');
    expect(await page.textContent('[role=alert].error')).toBe('400 Bad Requestquerystring/limit must be <= 60');
    await visit(page, `http://127.0.0.1:${host.port}/?block=840000&limit=abc`);
    expect(await page.textContent('[role=alert].error')).toContain('querystring/limit must be integer');
    // The page offers no retry, because the mirror would refuse the request again.
    expect(await page.locator('button:text("Try again")').count()).toBe(0);
    await page.click('text=Show the first records of the block');
    await page.waitForSelector('text=1–4 of 4');
  });

  it('of a missing file is shown, and disappears when the file is back', async () => {
    const damaged = copyOf(dist);
    const at = await startServer(damaged);
    const [path, away] = [join(damaged, 'runes/v1/blocks/2000007/20/20.json'), join(damaged, 'away.json')];
    renameSync(path, away);
    const { page } = await openAt('?block=2000007&offset=20', at);
    expect(await page.textContent('.error')).toContain('503 Service Unavailable');
    expect(await page.textContent('.error')).toContain('a file of this mirror is missing or unreadable; try again');
    renameSync(away, path);
    await page.click('button:text("Try again")');
    await page.waitForSelector('.activity');
    expect(await page.textContent('.range')).toBe('21–40 of 437 records');
    await at.close();
  });

  it('of an unreachable server is shown as such, and not as an offline device', async () => {
    const at = await startServer(dist);
    const { page } = await openAt('', at);
    await at.close();
    await lookUp(page, '840000');
    expect(await page.textContent('.error')).toContain('503 Service Unavailable');
    expect(await page.textContent('.error')).toContain('cannot be read');
    await page.context().setOffline(true);
    await page.click('button:text("Try again")');
    await page.waitForSelector('text=No connection');
    await page.context().setOffline(false);
    await page.waitForSelector('text=503 Service Unavailable');
  });

  it('of an offline device disappears when the device is online again', async () => {
    const { page } = await openAt();
    await page.context().setOffline(true);
    await lookUp(page, '840000');
    expect(await page.textContent('.error')).toContain('No connection');
    await page.context().setOffline(false);
    await page.waitForSelector('.activity');
    expect(await page.textContent('h1:visible')).toBe('Block 840,000');
  });
});

it('every action is possible with the keyboard', async () => {
  const { page, problems } = await openAt();
  const focused = () =>
    page.evaluate(() => `${document.activeElement?.tagName} ${document.activeElement?.getAttribute('aria-label') ?? ''}`);
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content');
  await page.keyboard.press('/');
  await page.keyboard.type('2000007');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.activity');
  expect(await focused()).toBe('H1 ');
  while ((await focused()) !== 'A Next page') await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=21–40 of 437');
  // The focus stays on the link, so one key press opens the next page.
  expect(await focused()).toBe('A Next page');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=41–60 of 437');
  expect(await page.textContent('#announcement')).toBe('Entries 41–60 of 437');
  while (!(await focused()).startsWith('BUTTON Copy the block hash')) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('/');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('query');
  // In the search field, the slash key types a slash.
  await page.keyboard.press('End');
  await page.keyboard.press('/');
  expect(await page.inputValue('#query')).toBe('2000007/');
  expect(problems).toEqual([]);
});
