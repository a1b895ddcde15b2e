/** Bytes that the browser transfers for each kind of page, with an empty cache. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { type LocalHost, startServer } from '../support/server.ts';
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

/** Opens a page with an empty cache. Returns the bytes of each answer as the server sent them. */
async function bytesOf(path: string): Promise<ReadonlyMap<string, number>> {
  const { page, context, problems, close } = await openPage('about:blank');
  const session = await context.newCDPSession(page);
  const [urls, sizes] = [new Map<string, string>(), new Map<string, number>()];
  session.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const url = urls.get(requestId) ?? '';
    sizes.set(`${requestId} ${url}`, encodedDataLength);
  });
  await session.send('Network.enable');
  await page.goto(`http://127.0.0.1:${host.port}/${path}`, { waitUntil: 'networkidle' });
  await page.waitForFunction(() => document.querySelector('.waiting, #view[aria-busy]') === null);
  await page.waitForLoadState('networkidle');
  expect(problems).toEqual([]);
  await close();
  return sizes;
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
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  const each = [...sizes].map(([url, bytes]) => `${bytes} ${url.split('/').slice(3).join('/')}`);
  expect(total, each.join('\n')).toBeLessThanOrEqual(limit);
  expect(total).toBeGreaterThan(20_000);
});
