/** Tests the look and accessibility of the explorer: on phones, in dark mode, without scripts, and with names that contain markup. */
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ndjson, record } from '../support/records.ts';
import type { LocalHost } from '../support/server.ts';
import { rowsOf } from './explorer.ts';
import { expectAccessible, type OpenPage, visit } from './support.ts';
import { usePages } from './usePages.ts';

const TX = '0xe79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375';
const TX_21 = '0xa1b3a92c17a005483322cf807b73bc9f7ec2977867cf5cbaec18754b900bf6bb';
const PHONE = { width: 360, height: 780 };
const folder = temporaryFolder();
const { open, serve } = usePages();
let host: LocalHost;

const openAt = (search: string, options: BrowserContextOptions = {}, at = host): Promise<OpenPage> =>
  open(`http://127.0.0.1:${at.port}/${search}`, options);

async function mirrorOf(name: string, inputs: readonly string[]): Promise<LocalHost> {
  await testBuild(join(folder, name), { inputs });
  return serve(join(folder, name));
}

beforeAll(async () => {
  host = await mirrorOf('sample', [SAMPLE_INPUT]);
});

const VIEWS = [
  ['the overview', ''],
  ['a block', '?block=2000007'],
  ['a filtered block', '?block=2000008&operation=mint'],
  ['a transaction', `?tx=${TX}`],
  ['a transaction with totals', `?tx=${TX_21}`],
  ['nothing found', '?block=2000005'],
  ['a misread link', '?block=840000:3'],
  ['an error', '?block=840000&limit=1000'],
] as const;

it.each(VIEWS)('%s has no accessibility violation, and fits the width of a phone', async (_, search) => {
  const { page } = await openAt(search);
  await expectAccessible(page);
  const { page: phone } = await openAt(search, { viewport: PHONE, hasTouch: true, isMobile: true });
  expect(await phone.evaluate(() => [document.documentElement.scrollWidth, innerWidth])).toEqual([PHONE.width, PHONE.width]);
});

it('the background follows the colour scheme of the system', async () => {
  const { page } = await openAt('');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(await ground()).toBe('rgb(255, 255, 255)');
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await ground()).toBe('rgb(19, 20, 26)');
});

describe('the overview', () => {
  it('shows the statistics as a chart, a list of blocks and a list of runes', async () => {
    const { page, problems, requested } = await openAt('');
    // All of it is in the page: there is no request for statistics.
    expect(requested.map((url) => new URL(url).pathname).filter((path) => path.endsWith('.json'))).toEqual([]);
    const stats = JSON.parse((await host.send('GET', '/runes/v1/stats.json')).body) as {
      activity: { height: number }[];
      runes: { spaced_name: string; records: number }[];
    };
    expect(await page.$$eval('.plot a', (all) => all.map((one) => one.getAttribute('href')))).toEqual(
      stats.activity.map(({ height }) => `?block=${height}`),
    );
    expect(await page.getAttribute('.plot a[href="?block=2000007"]', 'aria-label')).toContain(': 437 records (');
    const [busiest] = await page.$$eval('#runes tbody tr', (all) =>
      all.map((row) => [row.querySelector('.rune')?.textContent, row.lastElementChild?.textContent]),
    );
    expect(busiest).toEqual([stats.runes[0]?.spaced_name, String(stats.runes[0]?.records)]);
    expect(await page.$$eval('#newest tbody a', (all) => all.map((one) => one.textContent))).toHaveLength(10);
    expect(await page.textContent('#newest time')).toMatch(/ago$/);
    await page.click('#newest tbody a >> nth=0');
    await page.waitForSelector('h1:text("Block 2,000,010")');
    expect(problems).toEqual([]);
  });

  it('breaks the axis where heights are missing, and describes the column under the pointer', async () => {
    const { page } = await openAt('');
    expect(await page.locator('.plot .break').count()).toBe(1);
    const described = () =>
      page.$$eval('.plot a', (all) => all.map((one) => getComputedStyle(one, '::after').content).filter((content) => content !== 'none'));
    const box = await page.locator('.drawing').boundingBox();
    await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 100);
    expect(await described()).toEqual([expect.stringContaining('Block 840,000, 2024-04-20: 4 records (2 etching, 2 receive)')]);
    await page.mouse.move(0, 0);
    expect(await described()).toEqual([]);
  });

  it('opens the block of a column with the pointer, the keyboard or a tap', async () => {
    const { page, problems } = await openAt('');
    const box = (await page.locator('.drawing').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.click(box.x + 20, box.y + 100);
    await page.waitForSelector('h1:text("Block 840,000")');
    await page.goBack();
    // The Tab key stops once in the chart, and comes back to the same column.
    await page.focus('.plot a:not([tabindex])');
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
    for (const [key, block] of [
      ['End', '2,000,010'],
      ['ArrowRight', '2,000,010'],
      ['ArrowLeft', '2,000,009'],
      ['Home', '840,000'],
      ['ArrowRight', '2,000,001'],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused()).toMatch(new RegExp(`^Block ${block}, .*: [0-9,]+ records? \\(`));
    }
    expect(await page.locator('.plot a[tabindex="0"]').count()).toBe(1);
    // With another key, an arrow key belongs to the browser.
    await page.keyboard.press('Control+ArrowRight');
    expect(await focused()).toMatch(/^Block 2,000,001,/);
    await page.keyboard.press('Shift+Tab');
    expect(await focused()).not.toMatch(/^Block/);
    await page.keyboard.press('Tab');
    expect(await focused()).toMatch(/^Block 2,000,001,/);
    await page.keyboard.press('Enter');
    await page.waitForSelector('h1:text("Block 2,000,001")');
    const phone = await openAt('', { viewport: PHONE, hasTouch: true, isMobile: true });
    await phone.page.locator('.plot').scrollIntoViewIfNeeded();
    const plot = (await phone.page.locator('.drawing').boundingBox()) ?? box;
    await phone.page.touchscreen.tap(plot.x + 10, plot.y + 100);
    // The first tap only shows the text of the column, and a tap on the text opens the block.
    await phone.page.waitForFunction(() => document.activeElement?.getAttribute('aria-label')?.startsWith('Block 840,000,') === true);
    expect(new URL(phone.page.url()).search).toBe('');
    await phone.page.touchscreen.tap(plot.x + plot.width - 30, plot.y);
    await phone.page.waitForSelector('h1:text("Block 840,000")');
    expect([...problems, ...phone.problems]).toEqual([]);
  });

  it('fits its chart and the labels of the axis into a window of any width', async () => {
    const input = join(folder, 'many');
    writeFiles(input, { 'many.ndjson': ndjson(Array.from({ length: 131 }, (_, i) => record(900_000 + i, 0))) });
    const { page } = await openAt('', {}, await mirrorOf('many-mirror', [input]));
    expect(await page.textContent('figcaption > .quiet')).toBe('Each column is a block with activity');
    for (const width of [320, 390, 820, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      const boxes = await page.$$eval('.drawing > text[y="230"]', (all) =>
        all.map((one) => one.getBoundingClientRect()).map(({ left, right }) => [left, right] as const),
      );
      expect(boxes).toHaveLength(3);
      const sorted = boxes.flat().sort((a, b) => a - b);
      expect([width, boxes.sort(([a], [b]) => a - b).flat()]).toEqual([width, sorted]);
      expect(sorted.at(-1)).toBeLessThanOrEqual(width);
      const last = await page.locator('.plot a').last().boundingBox();
      expect(Math.round((last?.x ?? 0) + (last?.width ?? 0))).toBeLessThanOrEqual(width);
    }
  });
});

it('without scripts, the page shows the totals and statistics of the mirror, and the paths of the API', async () => {
  const { page, problems } = await openAt('?block=840000', { javaScriptEnabled: false });
  const text = await page.innerText('body');
  expect(text).toMatch(/Records\s+1,227\s+Transactions\s+193\s+Blocks\s+10\s+Highest block\s+2,000,010/);
  expect(text).toContain('Blocks with runes: 840,000, 2,000,001 to 2,000,004 and 2,000,006 to 2,000,010.');
  expect(text).toContain('GET runes/v1/transactions/tx_id/activity?offset=&limit=');
  expect(text).toContain('Look-ups on this page, and the pages of blocks and runes, need JavaScript');
  for (const id of ['.drawing', '#newest', '#runes']) expect(await page.isVisible(id)).toBe(true);
  expect(await page.textContent('#newest time')).toMatch(/ UTC$/);
  expect(await page.isVisible('#look-up')).toBe(false);
  expect(problems).toEqual([]);
});

it('does not execute markup in the data', async () => {
  const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>"\'&amp;';
  const nasty = record(840_001, 1, {
    rune: { id: '840000:1', number: 1, name: markup, spaced_name: markup },
    address: markup,
    receiver_address: `javascript:${markup}`,
    operation: 'send',
    amount: '340282366920938463463374607431768211455',
  });
  const input = join(folder, 'nasty');
  writeFiles(input, { 'nasty.ndjson': ndjson([nasty]) });
  const at = await mirrorOf('nasty-mirror', [input]);
  const { page, problems, requested } = await openAt('', {}, at);
  await page.waitForSelector('#runes .rune');
  expect(await page.textContent('#runes .rune')).toBe(markup);
  for (const search of ['?block=840001', `?tx=${nasty.location.tx_id}`]) {
    await visit(page, `http://127.0.0.1:${at.port}/${search}`);
    expect(await page.textContent('.rune')).toBe(markup);
    expect(await rowsOf(page)).toMatchObject([
      { addresses: [markup, `javascript:${markup}`], amount: '340282366920938463463374607431768211455' },
    ]);
    expect(await page.textContent('data')).toBe('340,282,366,920,938,463,463,374,607,431,768,211,455');
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(await page.title()).toMatch(/Rune activity mirror$/);
    await page.setViewportSize(PHONE);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
  }
  // Markup in a link must be shown as text too.
  await visit(page, `http://127.0.0.1:${at.port}/?block=${encodeURIComponent(markup)}`);
  expect(await page.locator('main img').count()).toBe(0);
  expect(await page.inputValue('#query')).toBe(markup);
  expect(requested.filter((url) => new URL(url).pathname === '/x')).toEqual([]);
  expect(problems).toEqual([]);
});
