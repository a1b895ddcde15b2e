/** Counts the bytes that a host sends for each kind of page, if the browser's cache is empty. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import type { LocalHost } from '../support/server.ts';
import { settled } from './explorer.ts';
import { openPage, quiet } from './support.ts';
import { usePages } from './usePages.ts';

/** Upper limits of the transferred bytes. */
const OVERVIEW = 55_000;
const PAGE = 150_000;

/** Two hosts. `host` has ten recorded blocks, whose lists have one level. `longer` has 175 blocks, whose lists have all four levels. */
const { serve } = usePages();
let host: LocalHost;
let longer: LocalHost;

beforeAll(async () => {
  const start = async (input: string) => {
    const dist = join(temporaryFolder(), 'dist');
    await testBuild(dist, { inputs: [input], layout: 'archive', lists: true });
    return serve(dist);
  };
  [host, longer] = [await start(SAMPLE_INPUT), await start(join(ROOT, 'sample'))];
});

/**
 * Opens a page with an empty cache. Returns the bytes that the server sends, counted by a proxy: compressed bodies with their headers.
 * Chromium's own counts miss parts of files that it fetches in parallel.
 */
async function bytesOf(path: string, limit: number, at = host): Promise<number> {
  let bytes = 0;
  const proxy = createServer((client) => {
    const server = connect(at.port, '127.0.0.1');
    server.on('data', (chunk) => {
      bytes += chunk.length;
    });
    for (const socket of [client, server]) socket.on('error', () => socket.destroy());
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/${path}`;
  const { page, problems, requested, close } = await openPage(url);
  await settled(page);
  expect(await page.locator('#view >> text=has no runes').count()).toBe(0);
  await quiet(page);
  await close();
  proxy.close();
  expect(problems).toEqual([]);
  expect(bytes, requested.join('\n')).toBeLessThanOrEqual(limit);
  return bytes;
}

const ADDRESS = 'bcrt1qxmg5ympmhq50dhpt4l6zqnmzl806xxaqm27hdw';

it.each([
  ['“Use it”', '#ask', OVERVIEW],
  ['activity of an address', `?address=${ADDRESS}&list=activity&limit=60`, PAGE],
  ['an output', '?output=4cd3318422f372b8438534ab2d026111d1bd223e38f8578a85200e0500ecf385:1', PAGE],
  ['the API page', 'docs/', PAGE],
])('%s transfers few bytes', async (_, path, limit) => {
  // The lower bound shows that the page, its script and its data are counted.
  expect(await bytesOf(path, limit)).toBeGreaterThan(5_000);
});

/**
 * RUNE has the most activity of all runes. BUSY and SPREAD are the addresses with the most activity: BUSY has it in few blocks, and SPREAD
 * in most blocks.
 */
const RUNE = '2000001:15';
const [BUSY, SPREAD] = ['bcrt1q0zle0eulmswur6tf4e5j6t7mfl26d9hycdtky7', 'bcrt1q68fq3r5jzlkhhv6v39yctt2rs80xu8tdndzvrc'];

it.each([
  ['the overview', '', OVERVIEW],
  ['the largest block', '?block=2000008', PAGE],
  ['the largest transaction', '?tx=0fec8c48716402342396d2ce55e470cd7430e29f04c5145470e073124460d2a8', PAGE],
  ['60 records of a rune', `?rune=${RUNE}&limit=60`, PAGE],
  ['60 holders', `?rune=${RUNE}&list=holders&offset=60&limit=60`, PAGE],
  ['outputs', `?address=${SPREAD}&list=outputs&limit=60`, PAGE],
  ['60 records of an address from a few blocks', `?address=${BUSY}&list=activity&limit=60`, PAGE],
  ['60 records of an address from many blocks', `?address=${SPREAD}&list=activity&limit=60`, PAGE],
  ['all runes', '?runes', PAGE],
  ['a search', '?runes=SYN', PAGE],
])('of 175 blocks, %s transfers few bytes', async (_, path, limit) => {
  expect(await bytesOf(path, limit, longer)).toBeGreaterThan(20_000);
});
