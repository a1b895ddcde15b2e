/** Bytes that the browser transfers for each kind of page, with an empty cache. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { manyRunes } from './runeMirror.ts';
import { closeBrowser, openPage } from './support.ts';

/** Limits in bytes, with the headers of the answers. */
const OVERVIEW = 55_000;
const PAGE = 150_000;

let host: LocalHost;

beforeAll(async () => {
  const dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: [join(ROOT, 'sample')], layout: 'archive', lists: true });
  host = await startServer(dist);
});
afterAll(async () => {
  await closeBrowser();
  await host.close();
});

/** Opens a page with an empty cache. Returns the bytes of each answer as the server sent them, with its URL. */
async function bytesOf(path: string, { port } = host, use?: (page: Page) => Promise<void>): Promise<ReadonlyMap<string, number>> {
  const { page, context, problems, close } = await openPage('about:blank');
  const session = await context.newCDPSession(page);
  const [urls, sizes] = [new Map<string, string>(), new Map<string, number>()];
  session.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    sizes.set(`${requestId} ${urls.get(requestId)}`, encodedDataLength);
  });
  await session.send('Network.enable');
  await page.goto(`http://127.0.0.1:${port}/${path}`, { waitUntil: 'networkidle' });
  await page.waitForFunction(() => document.querySelector('.waiting, #view[aria-busy]') === null);
  await use?.(page);
  await page.waitForLoadState('networkidle');
  expect(problems).toEqual([]);
  await close();
  return sizes;
}

function expectAtMost(sizes: ReadonlyMap<string, number>, limit: number): void {
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  expect(total, [...sizes].map(([url, bytes]) => `${bytes} ${url}`).join('\n')).toBeLessThanOrEqual(limit);
  // The page itself, its script and its data.
  expect(total).toBeGreaterThan(20_000);
}

const ADDRESS = 'bcrt1qxmg5ympmhq50dhpt4l6zqnmzl806xxaqk3prs9';

it.each([
  ['the overview', '', OVERVIEW],
  ['“Use it”', '#ask', OVERVIEW],
  ['a block', '?block=latest', PAGE],
  ['a transaction', '?tx=4cd3318422f372b8438534ab2d026111d1bd223e38f8578a85200e0500ecf385', PAGE],
  ['a rune', '?rune=SYNTHETICDELTA', PAGE],
  ['holders', '?rune=SYNTHETICDELTA&list=holders', PAGE],
  ['an address', `?address=${ADDRESS}`, PAGE],
  ['activity of an address', `?address=${ADDRESS}&list=activity&limit=60`, PAGE],
  ['outputs', `?address=${ADDRESS}&list=outputs`, PAGE],
  ['an output', '?output=4cd3318422f372b8438534ab2d026111d1bd223e38f8578a85200e0500ecf385:1', PAGE],
  ['all runes', '?runes', PAGE],
  ['open mints', '?runes&list=open', PAGE],
  ['a search of all names', '?runes=DELTA', PAGE],
  ['the API page', 'docs/', PAGE],
])('%s transfers few bytes', async (_, path, limit) => {
  const sizes = await bytesOf(path);
  expectAtMost(sizes, limit);
});

it('a search reads names by itself only if they are few', async () => {
  const folder = temporaryFolder();
  for (const [count, reads] of [
    [3000, true],
    [3001, false],
  ] as const) {
    const [input, dist] = [join(folder, `${count}-input`), join(folder, String(count))];
    writeFiles(input, manyRunes(count));
    await testBuild(dist, { inputs: [input], layout: 'archive', lists: true });
    const at = await startServer(dist);
    const typed = await bytesOf('', at, async (page) => {
      await page.focus('#query');
      await page.keyboard.type('run');
      await page.waitForSelector('#suggestions li');
    });
    const searched = await bytesOf('?runes=RUN', at);
    for (const sizes of [typed, searched]) expectAtMost(sizes, PAGE);
    const largest = Math.max(...[...searched].filter(([url]) => url.includes('/archive/')).map(([, bytes]) => bytes));
    expect([count, largest > 20_000]).toEqual([count, reads]);
    await at.close();
  }
});
