/**
 * Checks the files of a build that are not part of the API, on every host. These are pages for people, scripts, documents and bulk data.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { isBuiltFile } from '../../src/pages/fileKinds.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import { filesBelow } from './build.ts';
import { SECURITY_HEADERS } from './securityHeaders.ts';
import type { Host } from './server.ts';

const PARQUET = 'application/vnd.apache.parquet';

/** Content types by file extension. */
const HEADERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  bin: { ...SECURITY_HEADERS.other, 'content-type': 'application/octet-stream' },
  css: { ...SECURITY_HEADERS.other, 'content-type': 'text/css; charset=utf-8' },
  html: SECURITY_HEADERS.page,
  js: { ...SECURITY_HEADERS.other, 'content-type': 'text/javascript; charset=utf-8' },
  json: SECURITY_HEADERS.json,
  parquet: { ...SECURITY_HEADERS.other, 'content-type': PARQUET },
  ts: { ...SECURITY_HEADERS.other, 'content-type': 'text/plain; charset=utf-8' },
};

const endingOf = (path: string) => path.slice(path.lastIndexOf('.') + 1);

/** Returns the paths of a build's files that are not part of the API. */
const sitePaths = (dist: string): string[] => filesBelow(dist).filter((path) => isBuiltFile(path) && !path.startsWith('runes/'));

interface SiteHost {
  readonly port: number;
  /** True if the host chooses content types and the paths of pages itself, and no configuration can change that. */
  readonly hasOwnTypes?: boolean;
}

/** Checks the bytes and headers of all files of the site, the redirect from `/docs`, and range requests for Parquet files. */
export async function checkSiteFiles({ port, hasOwnTypes = false }: SiteHost, dist: string): Promise<void> {
  const origin = `http://127.0.0.1:${port}`;
  const paths = sitePaths(dist);
  // The build must have the explorer and its parts, the documents, and at least one bulk file.
  const endings = Object.keys(HEADERS).filter((ending) => ending !== 'bin' || existsSync(join(dist, ARCHIVE_FOLDER)));
  expect(new Set(paths.map(endingOf))).toEqual(new Set(endings));
  const expectHeaders = (path: string, response: Response) => {
    const { 'content-type': type = '', ...others } = HEADERS[endingOf(path)] ?? {};
    const found = Object.fromEntries(Object.keys(others).map((name) => [name, response.headers.get(name)]));
    expect([path, found]).toEqual([path, others]);
    const [bare = ''] = type.split(';');
    if (hasOwnTypes && ['bin', 'parquet', 'ts'].includes(endingOf(path))) return;
    expect(response.headers.get('content-type')?.replace('application/javascript', 'text/javascript')).toContain(hasOwnTypes ? bare : type);
  };
  for (const path of paths) {
    const response = await fetch(`${origin}/${path}`);
    expect([path, response.status]).toEqual([path, 200]);
    expectHeaders(path, response);
    expect(response.headers.get('etag'), path).toMatch(/^(?:W\/)?"[^"]+"$/);
    expect(Buffer.from(await response.arrayBuffer()).equals(readFileSync(join(dist, path))), path).toBe(true);
    const head = await fetch(`${origin}/${path}`, { method: 'HEAD' });
    expect([path, head.status, await head.text()]).toEqual([path, 200, '']);
  }
  for (const path of ['docs/index.html', 'index.html']) {
    const response = await fetch(`${origin}/${path.replace('index.html', '')}?x=1`);
    expect(await response.text()).toBe(readFileSync(join(dist, path), 'utf8'));
    expectHeaders(path, response);
  }
  // Some hosts redirect to the folder. Others show the folder's page directly. Either way, the page's relative links must work.
  const docs = await fetch(`${origin}/docs`);
  if (!hasOwnTypes) expect(new URL(docs.url).pathname).toBe('/docs/');
  expect([docs.status, await docs.text()]).toEqual([200, readFileSync(join(dist, 'docs/index.html'), 'utf8')]);
}

/** Sends the requests of Parquet readers: the size, the last bytes, and a part from the middle. */
export async function checkPlainRanges(port: number, dist: string): Promise<void> {
  const path = sitePaths(dist).find((one) => one.endsWith('.parquet')) ?? '';
  const bytes = readFileSync(join(dist, path));
  const url = `http://127.0.0.1:${port}/${path}`;
  const head = await fetch(url, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } });
  expect([head.headers.get('accept-ranges'), head.headers.get('content-length')]).toEqual(['bytes', String(bytes.length)]);
  for (const [range, first, last] of [
    ['bytes=0-3', 0, 3],
    ['bytes=-8', bytes.length - 8, bytes.length - 1],
    [`bytes=100-${bytes.length + 10}`, 100, bytes.length - 1],
  ] as const) {
    const part = await fetch(url, { headers: { range } });
    const names = ['content-range', 'content-encoding'].map((name) => part.headers.get(name));
    expect([part.status, ...names]).toEqual([206, `bytes ${first}-${last}/${bytes.length}`, null]);
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(first, last + 1))).toBe(true);
  }
  const late = await fetch(url, { headers: { range: `bytes=${bytes.length}-` } });
  expect([late.status, late.headers.get('content-range')]).toEqual([416, `bytes */${bytes.length}`]);
}

/** Checks that a browser that opens a wrong path gets a page. Other programs, and wrong paths of the API, get JSON. */
export async function checkErrorPages(host: Host): Promise<void> {
  const accept = { accept: 'Text/HTML,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
  const noStore = { 'cache-control': 'no-store' };
  for (const target of ['/nothing', '/block/840000', '/docs/nothing?x=1']) {
    const page = await host.send('GET', target, accept);
    expect([target, page]).toMatchObject([target, { status: 404, headers: { ...SECURITY_HEADERS.page, ...noStore } }]);
    expect(page.body).toContain('<h1>Not found</h1>');
    expect(await host.send('HEAD', target, accept)).toMatchObject({ status: 404, body: '', headers: SECURITY_HEADERS.page });
    expect(await host.send('GET', target)).toMatchObject({ status: 404, headers: { ...SECURITY_HEADERS.json, ...noStore } });
  }
  for (const target of ['/runes/v1/nothing', '/runes/nothing', '/runes/v1/blocks/1.json', '/runes/v1/blocks/840000']) {
    const [asked, plain] = [await host.send('GET', target, accept), await host.send('GET', target)];
    expect([target, asked.status, asked.body]).toEqual([target, 404, plain.body]);
    expect(asked.headers).toMatchObject({ ...SECURITY_HEADERS.json, ...noStore });
  }
}
