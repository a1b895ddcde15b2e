/** Tests that the explorer shows new blocks without a reload, moves between blocks with arrow keys, and shows local time. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { ndjson, record } from '../support/records.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { settled } from './explorer.ts';
import { etchedRunes } from './runeMirror.ts';
import { type OpenPage, quiet, revisit } from './support.ts';
import { usePages } from './usePages.ts';

const RUNE = { id: '840000:3', number: 3, name: 'DOGGOTOTHEMOON', spaced_name: 'DOG•GO•TO•THE•MOON' };
const folder = temporaryFolder();
const [input, dist] = [join(folder, 'input'), join(folder, 'dist')];
const { open, serve } = usePages();
let host: LocalHost;

/** Builds the mirror that the server serves, with the blocks from 900,000 to this height. */
async function buildTo(height: number): Promise<void> {
  rmSync(input, { recursive: true, force: true });
  const records = Array.from({ length: height - 899_999 }, (_, i) => record(900_000 + i, 0, { rune: RUNE }));
  writeFiles(input, { 'records.ndjson': ndjson(records) });
  await testBuild(dist, { inputs: [input], layout: 'archive', lists: true });
}

/** Opens a page whose clock is under the control of the test. */
async function openAt(search: string, { port } = host): Promise<OpenPage> {
  const opened = await open(`http://127.0.0.1:${port}/${search}`, { timezoneId: 'Europe/Berlin' });
  await opened.page.clock.install();
  await revisit(opened.page);
  return opened;
}

beforeAll(async () => {
  await buildTo(900_002);
  host = await serve(dist);
});

it('new blocks appear in each view without a reload, are announced, and do not disturb a control that the reader uses', async () => {
  const [overview, latest, rune, used] = await Promise.all(
    ['', '?block=latest', '?rune=840000:3', '?rune=840000:3'].map((search) => openAt(search)),
  );
  if (overview === undefined || latest === undefined || rune === undefined || used === undefined) throw new Error('no pages');
  await rune.page.click('.chip:text("Activity")');
  await settled(rune.page);
  await used.page.focus('.activity a >> nth=0');
  const before = await used.page.textContent('.range');
  await buildTo(900_003);
  for (const { page } of [overview, latest, rune, used]) await page.clock.runFor(31_000);

  await overview.page.waitForSelector('#newest tbody tr:first-child a:text("900,003")');
  await overview.page.waitForFunction(() => document.querySelector('#announcement')?.textContent === 'New block 900,003');
  expect(await overview.page.innerText('.figures')).toMatch(/Highest block\s+900,003/);
  expect(await overview.page.textContent('.lead')).toContain('900,000 to 900,003');
  expect(await overview.page.textContent('#runes tbody tr td:last-child')).toBe('4');
  expect(await overview.page.textContent('#activity .legend')).toContain('4');
  expect(await overview.page.locator('.plot a[href="?block=900003"]').count()).toBe(1);
  expect(await overview.page.textContent('#newest time')).toMatch(/ago$/);
  await latest.page.waitForSelector('h1:text("Block 900,003")');
  await rune.page.waitForSelector('.activity a:text("900,003")');
  // The keyboard focus stays on the tab.
  expect(await rune.page.evaluate(() => document.activeElement?.textContent)).toMatch(/^Activity/);
  expect(await used.page.textContent('.range')).toBe(before);
  await used.page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await used.page.clock.runFor(31_000);
  await used.page.waitForSelector('.activity a:text("900,003")');
  expect([overview, latest, rune, used].flatMap(({ problems }) => problems)).toEqual([]);
});

it('while the host sends an old start page, a view is renewed once, and the overview follows later', async () => {
  await buildTo(900_004);
  const { page, problems, requested } = await openAt('?rune=840000:3&list=activity');
  const old = (await host.send('GET', '/')).body;
  expect(old).toContain('900,004');
  const isStartPage = ({ pathname }: URL) => pathname === '/';
  await page.route(isStartPage, (route) => route.fulfill({ body: old, contentType: 'text/html' }));
  await buildTo(900_005);
  await page.clock.runFor(31_000);
  await page.waitForSelector('.activity a:text("900,005")');
  await quiet(page);
  const before = requested.length;
  for (let i = 0; i < 3; i += 1) {
    await page.clock.runFor(31_000);
    await quiet(page);
  }
  const paths = requested.slice(before).map((url) => new URL(url).pathname);
  expect([...new Set(paths)].sort()).toEqual(['/', '/runes/v1/manifest.json']);
  const newest = () => page.textContent('#newest tbody a >> nth=0');
  expect(await newest()).toBe('900,004');
  await page.unroute(isStartPage);
  await page.clock.runFor(31_000);
  await quiet(page);
  expect(await newest()).toBe('900,005');
  expect(problems).toEqual([]);
});

it('the suggested names of runes follow the mirror, also after a reorganisation', async () => {
  const [input, dist] = [join(folder, 'names-input'), join(folder, 'names')];
  const buildWith = async (names: readonly string[]) => {
    writeFiles(input, etchedRunes(names));
    await testBuild(dist, { inputs: [input], layout: 'archive', lists: true });
  };
  await buildWith(['MOON•FULL', 'MOON•OLD']);
  const at = await startServer(dist);
  const { page, problems } = await openAt('?runes=MOON', at);
  const found = () => page.$$eval('.runes-list .rune', (all) => all.map((one) => `${one.textContent} ${one.getAttribute('href')}`));
  const suggested = async () => {
    await page.fill('#query', 'moon');
    await page.waitForFunction(() => document.querySelectorAll('#suggestions li').length === 3);
    const names = await page.$$eval('#suggestions li .found', (all) => all.map((one) => one.textContent));
    await page.keyboard.press('Escape');
    return names;
  };
  expect(await found()).toEqual(['MOON•FULL ?rune=MOONFULL', 'MOON•OLD ?rune=MOONOLD']);
  await buildWith(['MOON•FULL', 'MOON•OLD', 'MOON•NEW']);
  await page.clock.runFor(31_000);
  await page.waitForSelector('.rune:text("MOON•NEW")');
  expect((await found()).map((text) => text.split(' ')[0])).toEqual(['MOON•FULL', 'MOON•OLD', 'MOON•NEW']);
  expect(await suggested()).toEqual(['MOON•FULL', 'MOON•OLD', 'MOON•NEW']);
  // Replaces the second and the third block. The number of runes stays the same, so the page cannot notice the change by their number.
  await buildWith(['MOON•FULL', 'MOON•HALF', 'MOON•RED']);
  await page.clock.runFor(31_000);
  await page.waitForSelector('.rune:text("MOON•HALF")');
  expect((await found()).map((text) => text.split(' ')[0])).toEqual(['MOON•FULL', 'MOON•HALF', 'MOON•RED']);
  expect(await suggested()).toEqual(['MOON•FULL', 'MOON•HALF', 'MOON•RED']);
  expect(problems.filter((text) => !text.includes('404'))).toEqual([]);
  await at.close();
});

it('a hidden page sends no requests', async () => {
  const { page, requested } = await openAt('?block=900000');
  const hide = (isHidden: boolean) =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  await hide(true);
  await page.clock.runFor(31_000);
  const before = requested.length;
  await page.clock.runFor(300_000);
  expect(requested.length).toBe(before);
  const asked = page.waitForRequest(/manifest\.json/);
  await hide(false);
  await asked;
});

it('arrow keys lead from block to block, but not while the reader types', async () => {
  const { page, problems } = await openAt('?block=900001');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('h1:text("Block 900,002")');
  await page.keyboard.press('ArrowLeft');
  await page.waitForSelector('h1:text("Block 900,001")');
  await page.keyboard.press('ArrowLeft');
  await page.waitForSelector('h1:text("Block 900,000")');
  // The arrow key does nothing, because the first block has no previous block.
  await page.keyboard.press('ArrowLeft');
  await page.focus('#query');
  await page.keyboard.press('ArrowRight');
  expect(new URL(page.url()).search).toBe('?block=900000');
  expect(problems).toEqual([]);
});

it('the time of a block is shown in UTC and in the time zone of the reader', async () => {
  const { page } = await openAt('?block=900000');
  expect(await page.textContent('.facts time')).toMatch(/ UTC · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d CES?T$/);
});
