/** Tests the suggestions of the explorer, and its pages of runes and addresses, on mirrors with all lists, some lists and no lists. */
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Stats } from '../../src/contract/statsSchemas.ts';
import type {
  Activity,
  ActivityPage,
  BalancePage,
  Etching,
  HolderPage,
  OutputAnswer,
  OutputPage,
  RuneActivityPage,
} from '../../src/serve/client/mirrorClient.ts';
import { groupDigits } from '../../src/site/formatValues.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT, run } from '../support/cli.ts';
import { limitsWith } from '../support/limits.ts';
import { copyOf } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { lookUp, settled } from './explorer.ts';
import { holder, LAST, runeInput } from './runeMirror.ts';
import { expectAccessible, type OpenPage, violations, visit } from './support.ts';
import { usePages } from './usePages.ts';

const folder = temporaryFolder();
const { open, serve } = usePages();
/**
 * The builds have, in this order: all lists except outputs; etchings without counts; only records of runes, in each layout; all lists;
 * lists of holders that end before the tip.
 */
const BUILDS = ['full', 'sample', 'records', 'archivedRecords', 'outputs', 'behind'] as const;
const mirrors = new Map<string, LocalHost>();
const mirrorOf = (name: (typeof BUILDS)[number]): LocalHost => mirrors.get(name) as LocalHost;

const openAt = (search: string, at = mirrorOf('full'), options: BrowserContextOptions = {}): Promise<OpenPage> =>
  open(`http://127.0.0.1:${at.port}/${search}`, options);

async function get<T>(target: string, at = mirrorOf('full')): Promise<T> {
  return JSON.parse((await at.send('GET', `/runes/v1/${target}`)).body) as T;
}

beforeAll(async () => {
  writeFiles(join(folder, 'full-input'), runeInput());
  writeFiles(join(folder, 'records-input'), {
    'records.ndjson': ndjson([
      record(840_001, 1, { rune: { id: '840000:3', number: 3, name: 'DOGGOTOTHEMOON', spaced_name: 'DOG•GO•TO•THE•MOON' } }),
    ]),
  });
  await testBuild(join(folder, 'full'), { inputs: [join(folder, 'full-input')], layout: 'archive', lists: true });
  await testBuild(join(folder, 'sample'), { inputs: [SAMPLE_INPUT] });
  await testBuild(join(folder, 'records'), { inputs: [join(folder, 'records-input')] });
  await testBuild(join(folder, 'archivedRecords'), { inputs: [join(folder, 'records-input')], layout: 'archive', lists: true });
  await testBuild(join(folder, 'outputs'), { inputs: [join(ROOT, 'sample')], layout: 'archive', lists: true });
  // With small pages and few levels, the list of holders ends some blocks before the last block.
  const limits = limitsWith({ listPage: 2, listLevels: { steps: [16, 4, 2], unsettled: 3 } });
  await testBuild(join(folder, 'behind'), { inputs: [join(folder, 'full-input')], layout: 'archive', lists: true, limits });
  for (const name of BUILDS) mirrors.set(name, await serve(join(folder, name)));
});

const options = (page: Page) => page.$$eval('#suggestions li', (all) => all.map((one) => one.textContent));
const field = (page: Page) =>
  page.$eval('#query', (one) => ['aria-expanded', 'aria-activedescendant'].map((name) => one.getAttribute(name)));

describe('suggestions', () => {
  it('appear while the reader types, need one file, and are selected with the keyboard', async () => {
    const { page, problems, requested } = await openAt('');
    await page.keyboard.press('/');
    await page.keyboard.type('d');
    expect(await field(page)).toEqual(['false', null]);
    await page.keyboard.type('o');
    await page.waitForSelector('#suggestions li');
    expect(await options(page)).toEqual([
      '🐕DOG•GO•TO•THE•MOON#2 840000:3',
      'DOGS•AND•CATS•TOGETHER#3 840000:6',
      'ᚱDOMINO•EFFECT•NOW#4 840000:9',
    ]);
    await page.keyboard.type('gs');
    await page.waitForFunction(() => document.querySelectorAll('#suggestions li').length === 1);
    expect(await page.textContent('#suggestions b')).toBe('DOGS');
    await page.waitForFunction(() => document.querySelector('#announcement')?.textContent === '1 suggestion');
    await page.keyboard.press('Backspace');
    await page.waitForFunction(() => document.querySelectorAll('#suggestions li').length === 2);
    expect(await field(page)).toEqual(['true', null]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await field(page)).toEqual(['true', 'suggestion-1']);
    expect(await page.getAttribute('#suggestion-1', 'aria-selected')).toBe('true');
    expect(await violations(page)).toEqual([]);
    // On the last suggestion, the down key leads back to the field.
    await page.keyboard.press('ArrowDown');
    expect(await field(page)).toEqual(['true', null]);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForSelector('h1:text("DOGS•AND•CATS•TOGETHER")');
    expect(new URL(page.url()).search).toBe('?rune=DOGSANDCATSTOGETHER');
    expect(await field(page)).toEqual(['false', null]);
    expect(requested.filter((url) => url.includes('/search/'))).toEqual([
      `http://127.0.0.1:${mirrorOf('full').port}/runes/v1/search/do.json`,
    ]);
    expect(problems).toEqual([]);
  });

  it('close with Escape, which then empties the field, and are selected with a pointer', async () => {
    const { page } = await openAt('');
    await page.focus('#query');
    await page.keyboard.type('Dog•g');
    await page.waitForSelector('#suggestions li');
    await page.keyboard.press('Escape');
    expect([await page.isVisible('#suggestions'), await page.inputValue('#query')]).toEqual([false, 'Dog•g']);
    await page.keyboard.press('ArrowDown');
    await page.waitForSelector('#suggestions li');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await page.inputValue('#query')).toBe('');
    await page.keyboard.type('amb');
    await page.click('#suggestions li');
    await page.waitForSelector('h1:text("AMBER•LANTERN•MOON")');
  });

  it('name the kinds of ids that a text may be, without a request for a file', async () => {
    const { page } = await openAt('');
    const cases: readonly (readonly [text: string, options: readonly string[]])[] = [
      ['840000', ['Block840,000height', 'Rune840,000number']],
      ['840000:3', ['Rune840000:3']],
      [holder(1), [`Address${holder(1).slice(0, 10)}…${holder(1).slice(-10)}`]],
      ['https://ordinals.com/rune/LATER•THAN•TODAY', ['RuneLATERTHANTODAY']],
      ['lat', ['שLATER•THAN•TODAY#5 840000:12', 'Blocklatestthe highest of this mirror']],
      ['.', []],
    ];
    for (const [text, expected] of cases) {
      await page.fill('#query', text);
      await page.waitForFunction((length) => document.querySelectorAll('#suggestions li').length === length, expected.length);
      expect([text, await options(page)]).toEqual([text, expected]);
    }
    // No rune name begins with these letters, so the search file for them does not exist.
    await page.fill('#query', 'zz');
    await page.waitForFunction(() => document.querySelector('#announcement')?.textContent === '0 suggestions');
    expect(await options(page)).toEqual([]);
  });

  it('do not need etchings', async () => {
    const { page } = await openAt('', mirrorOf('records'));
    await page.fill('#query', 'dogg');
    await page.waitForSelector('#suggestions li');
    expect(await options(page)).toEqual(['DOG•GO•TO•THE•MOON#3 840000:3']);
  });
});

describe('the page of a rune', () => {
  it('is found by name, id and URL', async () => {
    const { page, problems } = await openAt('');
    for (const text of ['DOGGOTOTHEMOON', '840000:3', 'dog.go.to.the.moon', 'https://unisat.io/runes/detail/DOG•GO•TO•THE•MOON']) {
      await lookUp(page, text);
      expect([text, await page.textContent('h1:visible')]).toEqual([text, 'DOG•GO•TO•THE•MOON']);
      expect(await page.title()).toBe('DOG•GO•TO•THE•MOON · Rune activity mirror');
      await page.goBack();
    }
    expect(problems).toEqual([]);
  });

  it('shows the etching, supply and holders', async () => {
    const { page } = await openAt('?rune=2');
    const { location } = await get<Etching>('etchings/840000:3');
    expect(await page.textContent('.facts')).toMatch(/Id840000:3Number2Decimals5Etched in block840,000Time.*UTCTransaction/);
    expect(await page.getAttribute('.facts a >> nth=1', 'href')).toBe(`?tx=${location.tx_id}`);
    const supply = await page.$$eval('[aria-labelledby=supply-title] .facts > div', (all) =>
      all.map((one) => [...one.children].map((part) => part.textContent)),
    );
    expect(supply).toEqual([
      ['Current', '99,999,999,979'],
      ['Premined', '100,000,000,000 100%'],
      ['Minted', '0 0%'],
      ['Burned', '21 <0.01%'],
    ]);
    expect(await page.textContent('.terms')).toContain('Held by 71 addresses, 97.96% by the ten largest.');
    expect(await page.textContent('.facts')).toMatch(/Turbono$/);
    expect(await page.textContent('.terms')).toContain('Nobody can mint this rune');
    await page.click('.facts a >> nth=0');
    await page.waitForSelector('h1:text("Block 840,000")');
    // A link of a rune in the records leads back to the page of the rune.
    await page.click('.activity a.rune:text("DOG•GO•TO•THE•MOON") >> nth=0');
    await page.waitForSelector('h1:text("DOG•GO•TO•THE•MOON")');
  });

  it.each([
    ['?rune=DOGGOTOTHEMOON&list=holders', 'holders', 'DOGGOTOTHEMOON'],
    [`?address=${holder(0)}&list=activity`, 'activity', holder(0)],
  ])('of %s is downloaded as the same file that the command export writes', async (search, list, subject) => {
    const { page, problems } = await openAt(search);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')]);
    const [saved, written] = ['saved.csv', 'written.csv'].map((name) => join(folder, `${list}-${subject}-${name}`)) as [string, string];
    await download.saveAs(saved);
    expect((await run('export', [list, subject, '--dir', join(folder, 'full'), '--out', written], folder)).code).toBe(0);
    expect(download.suggestedFilename()).toBe(`${list}-${subject}.csv`);
    expect(readFileSync(saved, 'utf8')).toBe(readFileSync(written, 'utf8'));
    expect(readFileSync(saved, 'utf8').split('\n').length).toBeGreaterThan(3);
    expect(problems).toEqual([]);
  });

  it('shows the state of the mint: open, ended or not begun', async () => {
    const cases = [
      [
        'AMBERLANTERNMOON',
        /Open3\.50% mintedMints so far140Mints left3,860Cap4,000Each mint100Minted14,000First blockno limitLast blockno limit/,
      ],
      ['DOMINOEFFECTNOW', /Closed since block 840,060.*First block840,010Last block840,059/],
      [
        'LATERTHANTODAY',
        /Opens at block 850,0000% minted.*Cap100.*First block850,000, in about 2 monthsLast block859,999, in about 4 months/,
      ],
    ] as const;
    for (const [name, words] of cases) {
      const { page } = await openAt(`?rune=${name}`);
      expect(await page.textContent('[aria-labelledby=mint-title]')).toMatch(words);
    }
  });

  it('shows holders with their shares, in pages', async () => {
    const { page, problems } = await openAt('?rune=840000:3&list=holders');
    const { results } = await get<HolderPage>('etchings/840000:3/holders?limit=60');
    const shown = () =>
      page.$$eval('.holders-list tbody tr', (all) =>
        all.map((row) => ({ address: row.querySelector('code')?.title, balance: row.querySelector('data')?.value })),
      );
    const expected = results.map(({ address, balance }) => ({ address, balance }));
    expect(await shown()).toEqual(expected.slice(0, 20));
    expect(await page.textContent('.holders-list tbody tr')).toMatch(/^1bc1p.*90\.17%$/);
    await page.click('nav[aria-label=Pages] a[aria-label="Next page"]');
    await page.waitForSelector('text=21–40 of 71');
    expect(await shown()).toEqual(expected.slice(20, 40));
    expect(await page.textContent('.holders-list tbody tr')).toMatch(/^21bc1p/);
    await visit(page, `http://127.0.0.1:${mirrorOf('full').port}/?rune=840000:3&list=holders&offset=400`);
    expect(await page.textContent('#view .note')).toContain('This list has 71 entries and ends before this page');
    await page.click('text=Show the first page');
    await page.waitForSelector('text=1–20 of 71');
    expect(problems).toEqual([]);
  });

  it('names the block that the list of holders is exact for, unless it is the last block', async () => {
    const { page } = await openAt('?rune=840000:1&list=holders', mirrorOf('behind'));
    const { block_height = LAST } = await get<HolderPage>('etchings/840000:1/holders', mirrorOf('behind'));
    expect(block_height).toBeLessThan(LAST);
    expect(await page.textContent('#view .note')).toMatch(
      new RegExp(`^Exact after block ${block_height.toLocaleString('en')}, ${LAST - block_height} blocks? before the highest`),
    );
    const { page: other } = await openAt('?rune=840000:1&list=holders');
    expect(await other.locator('#view .note').count()).toBe(0);
  });

  it('shows the activity of the rune', async () => {
    const { page } = await openAt('?rune=840000:3&limit=60');
    const { results, total } = await get<RuneActivityPage>('etchings/840000:3/activity?limit=60');
    expect(await page.textContent('.range')).toBe(`1–60 of ${total} records`);
    const shown = await page.$$eval('.activity tbody tr:not(.transaction)', (all) =>
      all.map((row) => [
        row.querySelector('.operation')?.textContent,
        row.querySelector('data')?.value,
        row.querySelector('[data-label="From and to"]')?.textContent,
      ]),
    );
    // Omits receives: each belongs to a send on this page.
    const others = results.filter(({ operation }) => operation !== 'receive');
    expect(shown).toEqual(
      others.map(({ operation, amount, address, receiver_address }) =>
        operation === 'burn'
          ? [operation, amount, address]
          : address === receiver_address
            ? ['to itself', amount, `${address}→itself`]
            : ['transfer', amount, `${address}→${receiver_address}`],
      ),
    );
    expect(shown.filter(([operation]) => operation === 'to itself')).toHaveLength(5);
    expect(await page.textContent('.command')).toContain('/runes/v1/etchings/840000:3/activity?limit=60');
  });

  it('says what is left to mint, and what was never minted', async () => {
    const supplyOf = async (search: string, at = mirrorOf('full')) => {
      const { page } = await openAt(search, at);
      return page.textContent('[aria-labelledby=supply-title]');
    };
    expect(await supplyOf('?rune=AMBERLANTERNMOON')).toMatch(/Left to mint386,000Held by/);
    expect(await supplyOf('?rune=DOMINOEFFECTNOW')).toMatch(/Never minted20,988Held by/);
    expect(await supplyOf('?rune=DOGSANDCATSTOGETHER')).toMatch(/Minted60 100%Burned0 0%Held by/);
    expect(await supplyOf('?rune=DOGGOTOTHEMOON', mirrorOf('sample'))).toMatch(
      /^SupplyPremined100,000,000,000 This mirror lacks older blocks/,
    );
  });

  it('that does not exist suggests names that begin alike', async () => {
    const { page } = await openAt('?rune=DOGGONE');
    expect(await page.textContent('#view')).toContain('This mirror has no rune DOGGONE.');
    expect(await page.textContent('#view')).toContain('The oldest runes whose names begin with DOGGO: 1.');
    expect(await page.$$eval('#view .rune', (all) => all.map((one) => one.textContent))).toEqual(['DOG•GO•TO•THE•MOON']);
    await page.click('#view .rune');
    await page.waitForSelector('h1:text("DOG•GO•TO•THE•MOON")');
  });

  it('names the data that a mirror with only etchings lacks', async () => {
    const { page, problems } = await openAt('?rune=DOGGOTOTHEMOON', mirrorOf('sample'));
    expect(await page.textContent('.terms')).toContain('This mirror lacks older blocks');
    expect(await page.textContent('#view .note')).toContain('does not have activity by rune');
    await page.click('.chip:text("Holders")');
    await page.waitForSelector('#view .note:text("does not have holders")');
    expect(problems).toEqual([]);
  });

  it.each(['records', 'archivedRecords'] as const)('names the data that a mirror without etchings lacks: %s', async (name) => {
    const { page, problems } = await openAt('?rune=DOGGOTOTHEMOON', mirrorOf(name));
    expect(await page.textContent('h1:visible')).toBe('DOG•GO•TO•THE•MOON');
    expect(await page.textContent('.facts')).toBe('Id840000:3Number3Etched in block840,000');
    expect(await page.textContent('#view')).toContain('This mirror has no etchings');
    if (name === 'records') expect(await page.textContent('#view')).toContain('does not have activity by rune');
    else expect(await page.locator('.activity tbody tr:not(.transaction)').count()).toBe(1);
    expect(problems).toEqual([]);
  });
});

it.each([
  ['details.js', 'DOGGOTOTHEMOON', '?block=840000', 'Block 840,000'],
  ['listPage.js', '840000', '?rune=840000:3', 'DOG•GO•TO•THE•MOON'],
])('%s loads only when one of its views is opened, and only these views show an error without it', async (script, id, other, title) => {
  const damaged = copyOf(join(folder, 'sample'));
  renameSync(join(damaged, script), join(damaged, 'away.js'));
  const at = await startServer(damaged);
  const { page, requested } = await openAt(other, at);
  expect(requested.filter((url) => url.endsWith(script))).toEqual([]);
  await lookUp(page, id);
  expect(await page.textContent('[role=alert].error')).toContain(script);
  await page.goBack();
  await page.waitForSelector(`h1:text("${title}")`);
  await at.close();
});

describe('the page of all runes', () => {
  const rows = (page: Page) =>
    page.$$eval('.runes-list tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

  async function csvOf(page: Page): Promise<string[]> {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')]);
    const path = join(folder, download.suggestedFilename());
    await download.saveAs(path);
    return readFileSync(path, 'utf8').split('\r\n');
  }

  it('is in the navigation, and shows the newest and the most active runes', async () => {
    const { page, problems } = await openAt('');
    await page.click('nav[aria-label=Site] a:text("Runes")');
    await page.waitForSelector('.runes-list');
    expect([await page.textContent('h1:visible'), await page.title(), await page.inputValue('#query')]).toEqual([
      'Runes',
      'Runes · Rune activity mirror',
      '',
    ]);
    // A right-to-left symbol stays before the name. The browser may break the name after each spacer.
    const first = page.locator('.runes-list tbody tr >> nth=0');
    expect(await first.locator('.rune').innerHTML()).toBe('LATER•<wbr>THAN•<wbr>TODAY');
    const [sign, name] = [await first.locator('.sign').boundingBox(), await first.locator('.rune').boundingBox()];
    expect(Number(sign?.x) + Number(sign?.width)).toBeLessThan(Number(name?.x) + 1);
    expect((await rows(page)).map(([rune, , supply, mints, mint]) => [rune, supply, mints, mint])).toEqual([
      ['שLATER•THAN•TODAY 840000:12', '0.7', '0', 'Opens at block 850,000 0%'],
      ['ᚱDOMINO•EFFECT•NOW 840000:9', '12', '12', 'Closed since block 840,060 0.05%'],
      ['¤DOGS•AND•CATS•TOGETHER 840000:6', '60', '12', 'Closed: all mints are made 100%'],
      ['🐕DOG•GO•TO•THE•MOON 840000:3', '99,999,999,979', '0', 'None'],
      ['🏮AMBER•LANTERN•MOON 840000:1', '21,014,000', '140', 'Open 3.50%'],
      ['⧉UNCOMMON•GOODS 1:0', '0', '0', 'Open until block 1,049,999 0%'],
    ]);
    expect(await page.textContent('.command')).toMatch(/runes\/v1\/etchings'$/);
    expect((await csvOf(page)).map((line) => line.split(',')[2])).toEqual([
      'name',
      ...['LATERTHANTODAY', 'DOMINOEFFECTNOW', 'DOGSANDCATSTOGETHER', 'DOGGOTOTHEMOON', 'AMBERLANTERNMOON', 'UNCOMMONGOODS'],
      undefined,
    ]);
    await page.click('.sort:text("Mints")');
    expect((await rows(page))[0]?.[0]).toContain('AMBER');
    await page.click('.sort:text("Etched")');
    expect((await rows(page))[0]?.[0]).toContain('UNCOMMON');
    await page.click('.chip:text("Most active")');
    await page.waitForSelector('.sort:text("Records")');
    expect((await rows(page))[0]).toEqual(['AMBER•LANTERN•MOON 840000:1', '282', '140', '0', '0']);
    expect((await csvOf(page))[1]).toMatch(/^840000:1,\d+,AMBERLANTERNMOON,AMBER•LANTERN•MOON,282,1,140,/);
    await page.click('.sort:text("Burn")');
    expect((await rows(page))[0]?.[0]).toMatch(/^DOG•/);
    await page.click('.sort:text("Records")');
    await page.click('.runes-list a >> nth=0');
    await page.waitForSelector('h1:text("AMBER•LANTERN•MOON")');
    await page.goBack();
    await page.waitForSelector('.sort:text("Records")');
    expect(problems).toEqual([]);
  });

  it('shows the most active runes of the last blocks', async () => {
    const { page, problems } = await openAt('?runes&list=day', mirrorOf('outputs'));
    const { recent } = await get<Stats>('stats.json', mirrorOf('outputs'));
    for (const [i, { first, last, runes }] of recent.entries()) {
      if (i > 0) await page.click('.chip:text("Active in 1,008 blocks")');
      await page.waitForSelector(`text=Blocks ${first.toLocaleString('en-US')} to ${last.toLocaleString('en-US')}.`);
      expect((await rows(page)).map(([, records]) => Number(records?.replace(',', '')))).toEqual(runes.map(({ records }) => records));
    }
    expect([recent.length, await page.title()]).toEqual([2, 'Runes, active in 1,008 blocks · Rune activity mirror']);
    expect(problems).toEqual([]);
  });

  it('shows the counts of all active runes in the same columns, in a window of any width', async () => {
    const { page } = await openAt('?runes&list=active', mirrorOf('outputs'));
    await page.waitForSelector('.runes-list');
    for (const [width, columns] of [
      [360, 1],
      [600, 1],
      [800, 4],
      [1000, 4],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      const lefts = await page.$$eval('.runes-list td.amount', (all) => all.map((cell) => cell.getBoundingClientRect().left));
      expect([width, new Set(lefts).size, lefts.length]).toEqual([width, columns, 80]);
    }
  });

  it('of a mirror without etchings shows the most active runes', async () => {
    const { page, problems } = await openAt('?runes', mirrorOf('records'));
    expect(await rows(page)).toEqual([['DOG•GO•TO•THE•MOON 840000:3', '1', '0', '0', '0']]);
    await page.click('.chip:text("Newest")');
    await page.waitForSelector('#view .note:text("does not have etchings")');
    expect(problems).toEqual([]);
  });
});

it('a search shows the runes whose names begin with the letters', async () => {
  const found = (page: Page) => page.$$eval('.runes-list .rune', (all) => all.map((one) => one.textContent));
  const { page, problems } = await openAt('');
  // Nothing has this name, but names begin like this.
  await lookUp(page, 'dog');
  expect([new URL(page.url()).search, await page.textContent('h1:visible')]).toEqual(['?rune=DOG', 'Runes with DOG']);
  expect(await found(page)).toEqual(['DOG•GO•TO•THE•MOON', 'DOGS•AND•CATS•TOGETHER']);
  expect(await page.textContent('#view')).toContain('This mirror has no rune DOG.');
  expect(await page.textContent('#view')).toContain('The oldest runes whose names begin with DOG: 2.');
  expect(await violations(page)).toEqual([]);
  await visit(page, `http://127.0.0.1:${mirrorOf('full').port}/?runes=DOGX`);
  expect(await page.textContent('#view p')).toBe('The oldest runes whose names begin with DOG: 2.');
  await visit(page, `http://127.0.0.1:${mirrorOf('full').port}/?runes=XX`);
  expect(await page.textContent('#view p')).toBe('No name of a rune begins like this.');
  await visit(page, `http://127.0.0.1:${mirrorOf('records').port}/?runes=DOG`);
  expect(await found(page)).toEqual(['DOG•GO•TO•THE•MOON']);
  // A mirror has no file of letters with which no name begins.
  expect(problems.filter((text) => !text.includes('404'))).toEqual([]);
});

describe('the page of an address', () => {
  it('shows received and sent amounts with a sign by transaction, and marks transfers to the same address', async () => {
    const { page } = await openAt(`?address=${holder(0)}&list=activity&limit=60`);
    const { results, total } = await get<ActivityPage>(`addresses/${holder(0)}/activity?limit=60`);
    expect(total).toBeGreaterThan(60);
    const shown = await page.$$eval('.activity tbody', (all) =>
      all.map(({ children: [head, ...rows] }) => [
        head?.querySelector('code')?.title,
        head?.querySelector('a[href^="?block="]')?.textContent,
        ...rows.map((row) =>
          ['Operation', 'Amount', 'From or to'].map((name) => row.querySelector(`[data-label="${name}"]`)?.textContent).join(' '),
        ),
      ]),
    );
    const transactions = [...new Set(results.map(({ location }) => location.tx_id))];
    const expected = transactions.map((tx) => {
      const same = results.filter(({ location }) => location.tx_id === tx);
      const isOwn = ({ receiver_address }: Activity) => receiver_address === holder(0);
      const rows = same.flatMap((one) => {
        const amount = groupDigits(one.amount ?? '');
        // A receive has no row if it belongs to a send of the address to itself.
        if (one.operation === 'receive')
          return same.some((send) => isOwn(send) && send.amount === one.amount) ? [] : [`receive +${amount} ←sender or mint`];
        return [isOwn(one) ? `to itself ${amount} ` : `send −${amount} →${one.receiver_address}`];
      });
      return [tx, groupDigits(same[0]?.location.block_height ?? 0), ...rows];
    });
    // Omits the last transaction, whose records may continue on the next page.
    expect(shown.slice(0, -1)).toEqual(expected.slice(0, -1));
    const operations = shown.flatMap(([, , ...rows]) => rows.map((row) => row?.split(' ')[0]));
    expect(new Set(operations)).toEqual(new Set(['receive', 'send', 'to']));
    expect(await violations(page)).toEqual([]);
  });

  it('shows the balances and the activity', async () => {
    const { page, problems } = await openAt('');
    await lookUp(page, holder(7));
    const { results } = await get<BalancePage>(`addresses/${holder(7)}/balances`);
    const shown = await page.$$eval('.balances-list tbody tr', (all) =>
      all.map((row) => [row.querySelector('.rune')?.textContent, row.querySelector('data')?.value]),
    );
    // The API sorts by base units, not by decimal amounts: the moon has 5 decimals, the lantern 2 and the dogs none.
    const bySize = [...results].sort((a, b) => Number(b.balance) - Number(a.balance));
    expect(shown).toEqual(bySize.map(({ rune, balance }) => [rune.spaced_name, balance]));
    expect(shown.length).toBe(3);
    const column = () =>
      page.$$eval('.balances-list', ([table]) => [
        ...[...(table?.querySelectorAll('th') ?? [])].map((head) => head.getAttribute('aria-sort')),
        ...[...(table?.querySelectorAll('.rune') ?? [])].map((rune) => rune.textContent?.slice(0, 4)),
      ]);
    await page.waitForFunction(() => [...document.querySelectorAll('.sign')].every((sign) => sign.textContent !== ''));
    expect(await page.$$eval('.sign', (all) => all.map((one) => one.textContent).sort())).toEqual(['¤', '🏮', '🐕']);
    await page.focus('.sort:text("Rune")');
    await page.keyboard.press('Enter');
    expect(await column()).toEqual(['ascending', null, null, 'AMBE', 'DOG•', 'DOGS']);
    await page.keyboard.press('Enter');
    expect(await column()).toEqual(['descending', null, null, 'DOGS', 'DOG•', 'AMBE']);
    expect(await page.textContent('#announcement')).toBe('Sorted by Rune, descending');
    await page.click('.sort:text("Rune id")');
    expect(await column()).toEqual([null, 'ascending', null, 'AMBE', 'DOG•', 'DOGS']);
    await page.click('.chip:text("Activity")');
    await settled(page);
    const { total } = await get<BalancePage>(`addresses/${holder(7)}/activity`);
    expect(await page.textContent('.range')).toBe(`1–${total} of ${total} records`);
    expect(await page.textContent('.chip[aria-current]')).toBe(`Activity ${total}`);
    await page.click('.activity a.rune >> nth=0');
    await settled(page);
    expect(new URL(page.url()).search).toMatch(/^\?rune=/);
    expect(problems).toEqual([]);
  });

  it('stays in view on a phone when another list or page of it is chosen', async () => {
    const phone = { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true };
    const { page } = await openAt('?rune=840000:3&limit=5', undefined, phone);
    const place = () => page.$eval('#view .chips', (tabs) => tabs.getBoundingClientRect().top);
    for (const step of ['tab holders', 'tab activity']) {
      await page.click(`[data-step="${step}"]`);
      await page.waitForSelector(`[data-step="${step}"][aria-current=true]`);
      expect([step, (await place()) >= 0, (await place()) <= 400]).toEqual([step, true, true]);
    }
    await page.click('a.chip[aria-label^="Next"]:visible');
    await page.waitForFunction(() => location.search.includes('offset='));
    await page.waitForFunction(() => document.querySelector('#view')?.getAttribute('aria-busy') !== 'true');
    expect([(await place()) >= 0, (await place()) <= 400]).toEqual([true, true]);
  });

  it('has all sort headings on a phone, where mint counts are one right-aligned line', async () => {
    const at = mirrorOf('outputs');
    const phone = { viewport: { width: 360, height: 800 }, isMobile: true, hasTouch: true };
    const boxesOf = async (search: string, selector: string) => {
      const { page } = await openAt(search, at, phone);
      await page.waitForSelector(selector);
      return page.$$eval(selector, (all) =>
        all.map((one) => {
          const range = document.createRange();
          range.selectNodeContents(one);
          const { right, height } = range.getBoundingClientRect();
          return [Math.round(right), height < 30];
        }),
      );
    };
    const heads = await boxesOf('?address=bcrt1q68fq3r5jzlkhhv6v39yctt2rs80xu8tdndzvrc', '.sort');
    expect(heads).toHaveLength(3);
    for (const [right] of heads) expect(right).toBeLessThanOrEqual(344);
    const mints = await boxesOf('?runes&list=active', '[data-label="Mint"] > div');
    expect(mints).toEqual(mints.map(() => [344, true]));
    expect(mints.length).toBeGreaterThan(10);
  });

  it('is linked from records, and says when an address has nothing', async () => {
    const { page } = await openAt(`?block=${LAST}`);
    await page.click('.activity [data-label="From and to"] a >> nth=0');
    await settled(page);
    expect(await page.textContent('h1:visible')).toBe('Address');
    await lookUp(page, 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq');
    expect(await page.textContent('#view .note')).toBe('This address has no runes.');
    const { page: other } = await openAt(`?address=${holder(7)}`, mirrorOf('sample'));
    expect(await other.textContent('#view .note')).toContain('This mirror does not have balances');
  });
});

/** An address of the program's sample with many outputs, and a spent output. */
const OWNER = 'bcrt1qxmg5ympmhq50dhpt4l6zqnmzl806xxaqm27hdw';
const SPENT = '4cd3318422f372b8438534ab2d026111d1bd223e38f8578a85200e0500ecf385:1';

describe('the page of an output', () => {
  const balances = (page: Page) =>
    page.$$eval('.balances-list tbody tr', (all) =>
      all.map((row) => [row.querySelector('.rune')?.textContent, row.querySelector('data')?.value]),
    );
  const asShown = (runes: OutputAnswer['runes']) => runes.map(({ rune, balance }) => [rune.spaced_name, balance]);

  it('is linked from the outputs of an address, and shows the runes of the output', async () => {
    const at = mirrorOf('outputs');
    const { page, problems } = await openAt(`?address=${OWNER}`, at);
    await page.click('.chip:text("Outputs")');
    await page.waitForSelector('.outputs-list');
    const { results, total } = await get<OutputPage>(`addresses/${OWNER}/outputs`, at);
    expect(await page.textContent('.range')).toBe(`1–${total} of ${total}`);
    const shown = await page.$$eval('.outputs-list tbody tr', (all) =>
      all.map((row) => [row.querySelector('code')?.title, row.querySelector('.rune')?.textContent, row.querySelector('data')?.value]),
    );
    const expected = results.flatMap(({ output, runes }) => asShown(runes).map((rune) => [output.replace('0x', ''), ...rune]));
    expect(shown).toEqual(expected);
    expect(shown.length).toBeGreaterThan(5);
    await page.click('.outputs-list a >> nth=0');
    await page.waitForSelector('h1:text("Output")');
    expect(await page.textContent('.state')).toBe('Unspent: it holds runes');
    expect(await page.textContent('.facts')).toContain(OWNER);
    expect(await page.textContent('.facts')).toContain('As of block2,000,199');
    expect(await balances(page)).toEqual(asShown(results[0]?.runes ?? []));
    expect(problems).toEqual([]);
  });

  it('shows the runes that a spent output had, and says when the mirror cannot know them', async () => {
    const at = mirrorOf('outputs');
    const { page, problems } = await openAt('', at);
    await lookUp(page, SPENT);
    const { held } = await get<OutputAnswer>(`outputs/${SPENT}`, at);
    expect(held?.length).toBeGreaterThan(0);
    expect(await page.textContent('.state')).toMatch(/^Spent/);
    expect(await balances(page)).toEqual(asShown(held ?? []));
    await page.click('.facts a[href^="?tx="]');
    await page.waitForSelector('h1:text("Transaction")');
    await page.click(`.activity a[href="?output=${SPENT}"] >> nth=0`);
    await page.waitForSelector('h1:text("Output")');
    await lookUp(page, `${SPENT}9`);
    expect(await page.textContent('.state')).toContain('does not know whether it exists');
    expect(await page.getAttribute('#view a[rel=noreferrer]', 'href')).toBe(`https://mempool.space/tx/${SPENT.replace(':1', '#vout=19')}`);
    expect(problems).toEqual([]);
  });

  it('shows the transaction on a mirror without outputs', async () => {
    const { page, problems } = await openAt(`?output=${SPENT}`);
    expect(await page.textContent('#view .note')).toContain('does not have outputs');
    expect(await page.getAttribute('#view a >> nth=0', 'href')).toBe(`?tx=${SPENT.split(':')[0]}`);
    expect(problems).toEqual([]);
  });
});

it('every page links to the same id at other explorers of its network', async () => {
  const at = mirrorOf('outputs');
  const tx = SPENT.split(':')[0] ?? '';
  const linksOf = (page: Page) => page.$$eval('#view a[rel=noreferrer]', (all) => all.map((link) => link.getAttribute('href')));
  const { page } = await openAt('', at);
  const pages: readonly (readonly [search: string, space: string | undefined, ordinals: string])[] = [
    ['?block=2000007', 'block/2000007', 'block/2000007'],
    [`?tx=${tx}`, `tx/${tx}`, `tx/${tx}`],
    [`?output=${SPENT}`, `tx/${tx}#vout=1`, `output/${SPENT}`],
    [`?address=${OWNER}`, `address/${OWNER}`, `address/${OWNER}`],
    ['?rune=840000:3', undefined, 'rune/840000:3'],
  ];
  for (const [search, space, ordinals] of pages) {
    await page.goto(`http://127.0.0.1:${at.port}/${search}`);
    await page.waitForSelector('#view h1');
    const expected = [...(space === undefined ? [] : [`https://mempool.space/${space}`]), `https://ordinals.com/${ordinals}`];
    expect(await linksOf(page)).toEqual(expected);
  }
  for (const [network, expected] of [
    ['signet', [`https://mempool.space/signet/tx/${tx}`, `https://signet.ordinals.com/tx/${tx}`]],
    ['regtest', []],
    // The network of this mirror is unknown, so the page must not link to another explorer.
    [undefined, []],
  ] as const) {
    await page.route('**/?tx=*', async (route) => {
      const response = await route.fetch();
      await route.fulfill({
        response,
        body: (await response.text()).replace(' data-network="main"', network === undefined ? '' : ` data-network="${network}"`),
      });
    });
    await page.goto(`http://127.0.0.1:${at.port}/?tx=${tx}`);
    await page.waitForSelector('#view h1');
    expect(await linksOf(page)).toEqual(expected);
    await page.unrouteAll();
  }
});

it.each([
  '?block=2000008',
  '?tx=0fec8c48716402342396d2ce55e470cd7430e29f04c5145470e073124460d2a8',
  '?rune=2000001:15',
  // Its supply is the largest amount: 39 digits.
  '?rune=SYNTHETICALPHA',
  '?rune=2000001:15&list=holders',
  '?runes',
  `?address=${OWNER}&list=outputs`,
  `?address=${OWNER}&list=activity`,
])('%s cuts no id below four characters and an ellipsis at any width, and no table at that of a tablet', async (search) => {
  const { page } = await openAt(search, mirrorOf('outputs'));
  for (const width of [360, 390, 660, 820, 1024, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const shown = await page.$$eval('.records .cut', (all) =>
      all
        .filter((one) => one.scrollWidth > one.clientWidth)
        .map((one) => one.getBoundingClientRect().width / (one.scrollWidth / (one.textContent ?? '').length)),
    );
    expect([width, Math.min(5, ...shown)]).toEqual([width, 5]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    const hidden = await page.$$eval('.wide', (all) => Math.max(0, ...all.map((one) => one.scrollWidth - one.clientWidth)));
    if (width === 820) expect(hidden).toBe(0);
  }
});

it.each([
  ['a spent output', `?output=${SPENT}`],
  ['outputs of an address', `?address=${OWNER}&list=outputs`],
  ['a rune', '?rune=AMBERLANTERNMOON'],
  ['holders', '?rune=DOGGOTOTHEMOON&list=holders'],
  ['balances', `?address=${holder(7)}`],
  ['activity of an address', `?address=${holder(0)}&list=activity`],
  ['an unknown rune', '?rune=DOGGONE'],
  ['all runes', '?runes'],
  ['active runes', '?runes&list=active'],
  ['recently active runes', '?runes&list=day'],
] as const)('%s has no accessibility violation', async (_, search) => {
  const { page } = await openAt(search, mirrorOf(search.includes('output') ? 'outputs' : 'full'));
  await settled(page);
  expect(await page.locator('#view >> text=has no runes').count()).toBe(0);
  await expectAccessible(page);
});
