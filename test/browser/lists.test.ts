/** Tests the lists of the explorer, with pages, filters and links. Covers every kind of build, and static file hosts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { exportOf, rowsWithoutAddress } from '../support/nodeRows.ts';
import type { LocalHost } from '../support/server.ts';
import { filesBelowFolder, listOf, lookUp, type Row, rowOf, rowsOf, settled, told } from './explorer.ts';
import { type OpenPage, revisit, visit } from './support.ts';
import { usePages } from './usePages.ts';

/** Two transactions of the sample. The records of the first fit on one page, and those of the second do not. */
const TX_21 = 'a1b3a92c17a005483322cf807b73bc9f7ec2977867cf5cbaec18754b900bf6bb';
const TX_321 = '0fec8c48716402342396d2ce55e470cd7430e29f04c5145470e073124460d2a8';

const folder = temporaryFolder();
const BUILDS = {
  files: { layout: 'files', dialect: 'contract' },
  archive: { layout: 'archive', dialect: 'contract' },
} as const;
const hosts = new Map<string, LocalHost>();
const { open: openAt, serve } = usePages();

const hostOf = (name: string): LocalHost => hosts.get(name) as LocalHost;
const addressOf = (name: string, search = ''): string => `http://127.0.0.1:${hostOf(name).port}/${search}`;

beforeAll(async () => {
  for (const [name, site] of Object.entries(BUILDS)) {
    await testBuild(join(folder, name), { inputs: [SAMPLE_INPUT], ...site });
    hosts.set(name, await serve(join(folder, name)));
  }
});

/** Presses `Next` until the last page. Returns the rows of all pages. */
async function readAll({ page }: OpenPage): Promise<Row[]> {
  const rows = await rowsOf(page);
  for (;;) {
    const next = page.locator('nav[aria-label=Pages] a[aria-label="Next page"]');
    if ((await next.count()) === 0) return rows;
    const range = await page.textContent('.range');
    await next.click();
    await page.waitForFunction((before) => document.querySelector('.range')?.textContent !== before, range);
    rows.push(...(await rowsOf(page)));
  }
}

describe('in layout files', () => {
  const name = 'files';

  it('all pages of a block together are its list, in order', async () => {
    const opened = await openAt(addressOf(name, '?block=2000007'));
    const records = await listOf(hostOf(name), 'blocks/2000007');
    expect(records).toHaveLength(437);
    const rows = await readAll(opened);
    expect(told(rows)).toEqual(told(records.map((one) => rowOf(one, 'block'))));
    expect(await opened.page.textContent('.range')).toBe('421–437 of 437 records');
    expect(opened.problems).toEqual([]);
  });

  it('all records of a long transaction are shown, also in pages of 60', async () => {
    const ids = (await listOf(hostOf(name), 'blocks/2000007')).map(({ location }) => location.tx_id);
    const lengthOf = (id: string) => ids.filter((one) => one === id).length;
    const id = ids.reduce((longest, one) => (lengthOf(one) > lengthOf(longest) ? one : longest));
    const records = await listOf(hostOf(name), `transactions/${id}`);
    expect(records.length).toBeGreaterThan(60);
    const opened = await openAt(addressOf(name, `?tx=${id}`));
    await opened.page.click('nav[aria-label=Pages] a[aria-label="60 per page"]');
    await opened.page.waitForSelector(`text=1–60 of ${records.length}`);
    expect(new URL(opened.page.url()).search).toBe(`?tx=${id}&limit=60`);
    const rows = await readAll(opened);
    expect(told(rows)).toEqual(told(records.map((one) => rowOf(one, 'transaction'))));
    expect(opened.problems).toEqual([]);
  });

  it('a block is filtered by each operation', async () => {
    const { page, problems } = await openAt(addressOf(name, '?block=2000008'));
    for (const operation of OPERATIONS) {
      await page.click(`.chips >> text="${operation}"`);
      await page.waitForSelector(`.chip[aria-current] >> text="${operation}"`);
      await settled(page);
      const records = await listOf(hostOf(name), 'blocks/2000008', `&operation_type=${operation}`);
      expect(await page.textContent('.range')).toContain(` of ${records.length}`);
      expect(told(await rowsOf(page))).toEqual(told(records.slice(0, 20).map((one) => rowOf(one, 'block'))));
      expect(new URL(page.url()).search).toBe(`?block=2000008&operation=${operation}`);
    }
    expect(problems).toEqual([]);
  });

  it('a block shows its number of records per operation, and a transaction shows the sums of its amounts', async () => {
    const { page, problems } = await openAt(addressOf(name, '?block=2000008&operation=mint'));
    const counts = await Promise.all(
      OPERATIONS.map(async (operation) => (await listOf(hostOf(name), 'blocks/2000008', `&operation_type=${operation}`)).length),
    );
    const all = await listOf(hostOf(name), 'blocks/2000008');
    await page.waitForFunction(() => document.querySelectorAll('.chip .count').length === 6);
    expect(await page.$$eval('.chips .chip', (chips) => chips.map((chip) => chip.textContent))).toEqual([
      `all ${all.length}`,
      ...OPERATIONS.map((operation, i) => `${operation} ${counts[i]}`),
    ]);
    // The page has all records of the block, so it shows their numbers without another request.
    const { page: small, requested } = await openAt(addressOf(name, '?block=840000'));
    const chips = await small.$$eval('.chips .chip', (all) => all.map((chip) => chip.textContent));
    expect(chips).toEqual(['all 4', 'etching 2', 'mint 0', 'burn 0', 'send 0', 'receive 2']);
    expect(requested.filter((url) => url.includes('stats'))).toEqual([]);
    for (const [id, length] of [
      [TX_21, 21],
      [TX_321, 321],
    ] as const) {
      const records = await listOf(hostOf(name), `transactions/${id}`);
      expect(records).toHaveLength(length);
      await visit(page, addressOf(name, `?tx=${id}`));
      const totals = await page.$$eval('.totals tbody tr', (rows) =>
        rows.map((row) =>
          [...row.querySelectorAll('[data-label="Rune"] code, data')].map((cell) => cell.getAttribute('value') ?? cell.textContent),
        ),
      );
      const runes = [...new Set(records.map(({ rune }) => rune.id))];
      const sum = (rune: string, wanted: string) =>
        records
          .filter(({ rune: { id }, operation }) => id === rune && operation === wanted)
          .reduce((units, { amount = '' }) => units + BigInt(amount.replace('.', '')), 0n);
      // All amounts of a rune have the same number of decimals, so they can be compared without the decimal point.
      expect(totals.map(([rune, ...amounts]) => [rune, ...amounts.map((amount) => BigInt(String(amount).replace('.', '')))])).toEqual(
        length > 60 ? [] : runes.map((rune) => [rune, sum(rune, 'send'), sum(rune, 'receive')]),
      );
    }
    expect(problems).toEqual([]);
  });

  it('an operation without records in a block is distinguished from an unknown block', async () => {
    const { page } = await openAt(addressOf(name, '?block=840000&operation=mint'));
    expect(await page.textContent('#view')).toContain('There is no mint in this block');
    await page.click('.chip:text("all")');
    await page.waitForSelector('text=1–4 of 4');
  });

  it('a page past the end shows the length of the list', async () => {
    const { page } = await openAt(addressOf(name, '?block=840000&offset=60'));
    expect(await page.textContent('#view')).toContain('This list has 4 entries and ends before this page.');
    await page.click('text=Show the first page');
    await page.waitForSelector('text=1–4 of 4');
  });

  it('the command and the raw JSON match the answer on the page', async () => {
    const host = hostOf(name);
    const { page } = await openAt(addressOf(name));
    for (const search of [
      '?block=2000007&operation=mint&limit=60',
      '?block=2000007&offset=100&limit=60',
      '?block=840000&offset=1&limit=2',
      '?block=840000&operation=mint',
      '?block=2000007&offset=600',
    ]) {
      await visit(page, addressOf(name, search));
      const [, target = ''] = /^curl 'http:\/\/127\.0\.0\.1:[0-9]+(.*)'$/.exec((await page.textContent('.command')) ?? '') ?? [];
      const answer = await host.send('GET', target);
      expect(answer.status).toBe(200);
      const rows = (JSON.parse(answer.body) as { results: Parameters<typeof rowOf>[0][] }).results.map((one) => rowOf(one, 'block'));
      expect(told(await rowsOf(page))).toEqual(told(rows));
      const raw = new URL((await page.getAttribute('text=Raw JSON', 'href')) ?? '');
      expect((await host.send('GET', raw.pathname + raw.search)).body).toBe(answer.body);
    }
  });
});

it('the complete list of a block can be downloaded, and a failed download shows an error', async () => {
  const { page, requested } = await openAt(addressOf('files', '?block=2000007&operation=send'));
  expect(requested.filter((url) => url.endsWith('download.js'))).toEqual([]);
  const saved = async () => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')]);
    const path = join(folder, 'downloaded.csv');
    await download.saveAs(path);
    return [download.suggestedFilename(), readFileSync(path, 'utf8').split('\r\n')] as const;
  };
  const records = await listOf(hostOf('files'), 'blocks/2000007', '&operation_type=send');
  expect(records.length).toBeGreaterThan(60);
  const [name, [head = '', ...lines]] = await saved();
  expect(requested.filter((url) => url.endsWith('download.js'))).toHaveLength(1);
  expect([name, head.split(',').slice(0, 5)]).toEqual([
    'activity-block-2000007-send.csv',
    ['rune_id', 'rune_number', 'rune_name', 'rune_spaced_name', 'address'],
  ]);
  const amountOf = head.split(',').indexOf('amount');
  expect(lines.map((line) => line.split(',')[amountOf])).toEqual([...records.map(({ amount }) => amount), undefined]);
  await page.waitForFunction(() => document.getElementById('announcement')?.textContent === 'Downloaded the list');
  await page.route('**/manifest.json', (route) => route.abort());
  await page.route('**/blocks/**', (route) => route.abort());
  await page.click('text=Download CSV');
  await page.waitForSelector('text=Download failed: try again');
  await page.waitForFunction(() => document.getElementById('announcement')?.textContent?.startsWith('The download failed: ') === true);
  await page.unrouteAll();
  const [again] = await Promise.all([page.waitForEvent('download'), page.click('text=Download failed: try again')]);
  expect(again.suggestedFilename()).toBe(name);
});

describe('addresses', () => {
  it('survive a reload, and back and forward lead through the visited views', async () => {
    const { page, problems } = await openAt(addressOf('files', '?block=2000007&operation=send&limit=60&offset=60'));
    const seen = async () => [await page.textContent('h1:visible'), await page.locator('.range').first().textContent()];
    const first = ['Block 2,000,007', expect.stringMatching(/^61–120 of /)];
    expect(await seen()).toEqual(first);
    await revisit(page);
    expect(await seen()).toEqual(first);
    expect(await page.inputValue('#query')).toBe('2000007');
    await lookUp(page, '840000');
    await page.waitForSelector('text=1–4 of 4');
    await page.click('.brand');
    await page.waitForSelector('#overview:not([hidden])');
    expect(await page.title()).toBe('Rune activity mirror');
    await page.goBack();
    await page.waitForSelector('text=1–4 of 4');
    expect(await page.title()).toBe('Block 840,000 · Rune activity mirror');
    await page.goBack();
    await page.waitForSelector('text=61–120 of');
    expect(await seen()).toEqual(first);
    await page.goForward();
    await page.waitForSelector('text=1–4 of 4');
    expect(problems).toEqual([]);
  });

  it('lead from block to block, over heights without activity, and to the first and the last page', async () => {
    const { page, problems } = await openAt(addressOf('files', '?block=2000004'));
    await page.click('[aria-label="Next block: 2,000,006"]');
    await page.waitForSelector('text=Block 2,000,006');
    await page.click('[aria-label="Previous block: 2,000,004"]');
    await page.waitForSelector('text=Block 2,000,004');
    await visit(page, addressOf('files', '?block=2000001'));
    expect(await page.locator('[aria-label="Previous block: 840,000"]').count()).toBe(1);
    await visit(page, addressOf('files', '?block=2000007&offset=40'));
    await page.locator('[aria-label="Last page"]').first().click();
    await page.waitForSelector('text=421–437 of 437');
    await page.locator('[aria-label="First page"]').first().click();
    await page.waitForSelector('text=1–20 of 437');
    await page.locator('.activity a').first().click();
    await page.waitForSelector('h1:text("Transaction")');
    expect(problems).toEqual([]);
  });

  it('groups records by transaction, shows full ids where they fit, and aligns decimal points', async () => {
    const { page } = await openAt(addressOf('files', '?block=2000007&limit=60'));
    const records = (await listOf(hostOf('files'), 'blocks/2000007')).slice(0, 60);
    const groups = await page.$$eval('.activity tbody', (all) =>
      all.map((one) => [one.querySelector('.transaction code')?.textContent, one.children.length - 1]),
    );
    const ids = [...new Set(records.map(({ location }) => location.tx_id))];
    expect(ids.length).toBeGreaterThan(3);
    expect(groups.map(([id]) => id)).toEqual(ids);
    // A send and its receive are one row.
    expect(groups.reduce((sum, [, length]) => sum + Number(length), 0)).toBeLessThan(40);
    const points = async () => [
      ...new Set(await page.$$eval('.aligned .fraction', (all) => all.map((one) => Math.round(one.getBoundingClientRect().left)))),
    ];
    const isCut = () => page.$eval('.transaction .cut', (cut) => cut.scrollWidth > cut.clientWidth);
    expect([await points(), await isCut()]).toEqual([[expect.any(Number)], false]);
    await page.setViewportSize({ width: 390, height: 844 });
    const ends = await page.$$eval('.aligned .fraction', (all) => all.map((one) => Math.round(one.getBoundingClientRect().right)));
    expect([[...new Set(ends)], await isCut()]).toEqual([[374], true]);
    const heights = await page.$$eval('.activity tr:not(.transaction)', (all) => all.map((one) => one.clientHeight));
    // On a phone, a record is a card of five lines, or six if it has two addresses. Only the largest amounts need more.
    expect(heights.sort((a, b) => a - b)[Math.floor(heights.length / 2)]).toBeLessThan(170);
  });

  it('copies full ids', async () => {
    const { page, context } = await openAt(addressOf('files', '?block=840000'));
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.locator('[aria-label="Copy the transaction id"]').first().click();
    // Waits, because writing to the clipboard is asynchronous.
    await page.waitForFunction(() => document.getElementById('announcement')?.textContent === 'Copied the transaction id');
    const [row] = await rowsOf(page);
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(row?.transaction);
  });
});

it('a mirror without lists by operation explains why the filter is missing', async () => {
  const dist = join(folder, 'plain');
  await testBuild(dist, { inputs: [SAMPLE_INPUT], operationPages: false });
  hosts.set('plain', await serve(dist));
  const { page, problems } = await openAt(addressOf('plain', '?block=2000008'));
  expect(await page.textContent('.chips')).toContain('built without lists by operation');
  expect(await page.locator('.chips a').count()).toBe(1);
  const mints = (await listOf(hostOf('files'), 'blocks/2000008', '&operation_type=mint')).length;
  expect(await page.textContent('.chip >> text=mint')).toBe(`mint ${mints}`);
  expect(problems).toEqual([]);
  await visit(page, addressOf('plain', '?block=2000008&operation=mint'));
  expect(await page.textContent('.error')).toContain('querystring/operation_type is not available');
});

it('a record without an address says so, unless its operation never has an address', async () => {
  const [input, dist, rows] = [join(folder, 'nobody-input'), join(folder, 'nobody'), rowsWithoutAddress()];
  writeFiles(input, exportOf(rows));
  await testBuild(dist, { inputs: [input], dialect: 'hiro' });
  hosts.set('nobody', await serve(dist));
  const { page, problems } = await openAt(addressOf('nobody', '?block=2'));
  const cells = () => page.$$eval('.activity [data-label="From and to"]', (all) => all.map((cell) => cell.textContent));
  const [alice, bob] = ['address', 'receiver_address'].map(
    (column) => rows.ledger.map((row) => row[column as 'address']).find((address) => address !== null) ?? '',
  );
  expect(await cells()).toEqual([`${alice}→${bob}`, alice, alice, `${alice}→no address`, `${alice}→${bob}`, `no address→${bob}`, '']);
  expect(told(await rowsOf(page))).toEqual(told((await listOf(hostOf('nobody'), 'blocks/2')).map((one) => rowOf(one, 'block'))));
  await visit(page, addressOf('nobody', '?block=3'));
  expect(await cells()).toEqual(['no address', '', 'no address', bob, '→no address']);
  expect(await page.locator('.activity [data-label="From and to"] a').count()).toBe(1);
  expect(problems).toEqual([]);
});

describe.each(['files', 'archive'])('a static file host below a folder, layout %s', (name) => {
  it('supports the complete explorer', async () => {
    const site = await filesBelowFolder(join(folder, name));
    const opened = await openAt(`${site.url}/`);
    const { page, problems, requested } = opened;
    await page.waitForSelector('.plot .drawing');
    await lookUp(page, '2000007');
    const records = await listOf(hostOf(name), 'blocks/2000007');
    expect(told(await readAll(opened))).toEqual(told(records.map((one) => rowOf(one, 'block'))));
    await lookUp(page, records[5]?.location.tx_id ?? '');
    expect(await page.textContent('h1:visible')).toBe('Transaction');
    await page.waitForFunction(
      (isArchive) => (document.querySelector('.source')?.textContent ?? '').includes(isArchive ? 'only files' : '.json'),
      name === 'archive',
    );
    const [raw = ''] = await page.$$eval('a', (all) => all.filter((one) => one.textContent === 'Raw JSON').map((one) => one.href));
    if (name === 'files') expect(raw.startsWith(`${site.url}/runes/v1/`)).toBe(true);
    // The page must have no link or command with a request that this host refuses.
    const command = await page.$$eval('.command', (all) => all.map((one) => one.textContent));
    expect(command).toEqual(name === 'files' ? [`curl '${raw}'`] : []);
    if (name === 'files') expect((await fetch(raw)).status).toBe(200);
    else expect(await page.textContent('.source')).toContain('does not answer requests of the API');
    await revisit(page);
    expect(await page.textContent('h1:visible')).toBe('Transaction');
    await visit(page, `${site.url}/index.html?block=840000`);
    expect(await rowsOf(page)).toHaveLength(4);
    expect(requested.filter((url) => !url.startsWith(`${site.url}/`) && !url.startsWith('data:'))).toEqual([]);
    await visit(page, `${site.url}/`);
    expect(await page.textContent('#ask')).toContain('does not answer requests of the API');
    // Ignores some 404 answers: for each kind of request, the page asks once whether the host answers it.
    expect(problems.filter((text) => !/^404: .*\/activity(?:\?limit=20)?$/.test(text) && !/^console: .* 404 /.test(text))).toEqual([]);
    await site.close();
  });
});
