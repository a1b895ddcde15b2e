/**
 * Simulates builds that replace an output while a mirror reads it. An answer comes from the old build or from the new build, or is a 503.
 * It never mixes both builds.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { archiveFiles, fileServer } from '../support/archives.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { startServer } from '../support/server.ts';

describe('a window of two pages, layout files', () => {
  const work = temporaryFolder();
  const ID = `0x${hex('the transaction')}`;
  /** Builds a block with one transaction that has this many records. */
  const build = (name: string, records: number, block: string, more: { amount?: string; pageSizes?: readonly number[] } = {}) => {
    const { amount = '', pageSizes = [20, 60] } = more;
    const place = { block_hash: `0x${hex(block)}`, tx_id: ID, output: ID };
    const all = Array.from({ length: records }, (_, i) => record(5, 1, { amount: `${amount}${i}`, location: place }));
    writeFiles(work, { [`in-${name}/a.ndjson`]: ndjson(all) });
    return testBuild(join(work, name), { inputs: [join(work, `in-${name}`)], pageSizes, lists: true });
  };
  beforeAll(async () => {
    await build('old', 75, 'a');
    await build('longer', 76, 'a');
    await build('fork', 75, 'b', { amount: '9' });
    await build('sizes', 75, 'a', { pageSizes: [10, 60] });
  });

  /**
   * Requests a target while the build `other` replaces the build `old`. `fromNew` returns true for the files that have already been
   * replaced. If `isDoneByThen` is true, all files have been replaced before the second read of the manifest.
   */
  async function ask(target: string, other: string, fromNew: (path: string) => boolean, isDoneByThen: boolean): Promise<string> {
    let manifests = 0;
    const mirror = new FetchMirror((path) => {
      if (path.endsWith('manifest.json')) manifests += 1;
      return fileServer(join(work, fromNew(path) || (isDoneByThen && manifests > 1) ? other : 'old')).fetchFile(path);
    }, 0);
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    return `${response?.status} ${response?.status === 503 ? '' : await response?.text()}`;
  }

  const BLOCK = '/runes/v1/blocks/5/activity?limit=60&offset=10';
  it.each([
    ['of which one has another total', 'longer', BLOCK],
    ['of which one is of another block', 'fork', BLOCK],
    ['of a transaction that is in another block now', 'fork', `/runes/v1/transactions/${ID}/activity?limit=60&offset=10`],
    ['by operation, of which one is of another block', 'fork', `${BLOCK}&operation_type=receive`],
  ])('%s is answered with the new list if all of its files exist by then, otherwise with a 503', async (_, other, target) => {
    const fresh = await ask(target, other, () => true, false);
    expect(JSON.parse(fresh.slice(4))).toMatchObject({ limit: 60, offset: 10 });
    for (const page of ['/60/0.json', '/60/60.json']) {
      expect(await ask(target, other, (path) => path.endsWith(page), false)).toBe('503 ');
      expect(await ask(target, other, (path) => path.endsWith(page), true)).toBe(fresh);
    }
  });

  it('of a rune comes from one build, also when its pages are already those of the next build', async () => {
    const { rune } = record(5, 1);
    const target = `/runes/v1/etchings/${rune.id}/activity?limit=60&offset=10`;
    const [before, fresh] = [await ask(target, 'old', () => true, false), await ask(target, 'fork', () => true, false)];
    expect(JSON.parse(before.slice(4))).toMatchObject({ limit: 60, offset: 10, total: 75 });
    expect(fresh).not.toBe(before);
    expect(await ask(target, 'fork', (path) => path.startsWith('runes/v1/blocks/'), false)).toBe(before);
    const others = new Set(archiveFiles(join(work, 'fork')));
    const files = archiveFiles(join(work, 'old')).filter((file) => !others.has(file));
    // At least the root and a segment (a file of pages) differ between the archives. Tables may be equal, because they have only totals and
    // positions.
    expect(files.length).toBeGreaterThanOrEqual(2);
    for (const file of files) {
      expect(await ask(target, 'fork', (path) => path === file, false)).toBe('503 ');
      expect(await ask(target, 'fork', (path) => path === file, true)).toBe(fresh);
    }
  });

  it.each(['?limit=5&offset=12', '?limit=1'])('or a page, %s, does not use a first page of another size', async (query) => {
    const target = `/runes/v1/blocks/5/activity${query}`;
    const fresh = await ask(target, 'sizes', () => true, false);
    expect(fresh).toBe(await ask(target, 'old', () => true, false));
    expect(await ask(target, 'sizes', (path) => path.endsWith('/5.json'), false)).toBe('503 ');
    expect(await ask(target, 'sizes', (path) => path.endsWith('/5.json'), true)).toBe(fresh);
  });
});

describe('an output under the local server', () => {
  it('gives a 503 while it is missing, and answers when it is back', async () => {
    const out = join(temporaryFolder(), 'out');
    const work = temporaryFolder();
    writeFiles(work, { 'small.ndjson': ndjson([record(5, 1)]) });
    const options = { inputs: [join(work, 'small.ndjson')] };
    await testBuild(out, options);
    const host = await startServer(out);
    const ask = async () => {
      const { status, body } = await host.send('GET', '/runes/v1/blocks/5/activity');
      return status === 503 ? '503' : `${status} ${body}`;
    };
    const before = await ask();
    rmSync(out, { recursive: true });
    expect(await ask()).toBe('503');
    await testBuild(out, options);
    expect(await ask()).toBe(before);
    await host.close();
  });
});
