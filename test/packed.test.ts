/** Layout `packed`: it answers every request as layout `files` does, reads little, and is never wrong while it is replaced. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FetchMirror } from '../src/hosts/fetch.ts';
import { IndexCache } from '../src/pages/indexCache.ts';
import { findEntry, readPointer, readShard, renderShard } from '../src/pages/packed.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from './support/build.ts';
import { SAMPLE_INPUT } from './support/cases.ts';
import { recordedOutput } from './support/recorded.ts';
import { hex, ndjson, record } from './support/records.ts';
import { startServer } from './support/server.ts';

describe('a window of two pages, one of which cannot be had,', () => {
  it.each([404, 500])('lets go of the other: status %i, before it and after it', async (status) => {
    const out = await recordedOutput('packed', 'contract');
    for (const lost of ['/60/0.json', '/60/60.json']) {
      const isOpen = new Map<string, boolean>();
      const mirror = new FetchMirror(async (path) => {
        if (path.endsWith(lost)) return new Response(null, { status });
        // The page comes after the answer for the other, or before it.
        if (lost.endsWith('/0.json')) await new Promise((resolve) => setTimeout(resolve, 5));
        const body = new ReadableStream({
          start: (controller) => {
            isOpen.set(path, true);
            controller.enqueue(readFileSync(join(out, path)));
            controller.close();
          },
          cancel: () => {
            isOpen.set(path, false);
          },
        });
        return new Response(body);
      }, 0);
      const answer = mirror.answer(new Request('http://127.0.0.1/runes/v1/blocks/840001/activity?limit=60&offset=30'));
      if (status === 404) expect((await answer)?.status).toBe(503);
      else await expect(answer).rejects.toThrow('was answered with status 500');
      const pages = [...isOpen].filter(([path]) => path.includes('/blocks/'));
      expect(pages).toEqual([[expect.stringMatching(lost.endsWith('/0.json') ? /\/60\/60\.json$/ : /\/60\/0\.json$/), false]]);
    }
  });
});

describe('a page that stays missing', () => {
  it('is a 503 each time, and the rest of the index is answered from memory all the same', async () => {
    const out = await recordedOutput('packed', 'contract');
    const reads = new Map<string, number>();
    const mirror = new FetchMirror((path) => {
      reads.set(path, (reads.get(path) ?? 0) + 1);
      const isThere = existsSync(join(out, path)) && !path.includes('/blocks/840001-');
      return Promise.resolve(isThere ? new Response(readFileSync(join(out, path))) : new Response(null, { status: 404 }));
    }, 3_600_000);
    const ask = async (block: number) => (await mirror.answer(new Request(`http://127.0.0.1/runes/v1/blocks/${block}/activity`)))?.status;
    for (let i = 0; i < 5; i += 1) expect([await ask(840_000), await ask(840_001)]).toEqual([200, 503]);
    const readsOf = (path: string) => reads.get(`runes/v1/${path}`);
    expect([readsOf('pointers/840000.json'), readsOf('pointers/840001.json')]).toEqual([1, 6]);
    // Once more for each 503: the answer might be another with a new manifest.
    expect(readsOf('manifest.json')).toBe(6);
  });
});

describe('a tree', () => {
  it('writes each record once, and once more by operation, or not', async () => {
    const work = temporaryFolder();
    for (const operationPages of [true, false]) {
      const out = join(work, `${operationPages}`);
      const { manifest } = await testBuild(out, { inputs: CONFORMANCE_INPUTS, layout: 'packed', operationPages });
      const texts = filesBelow(join(out, 'runes/v1/blocks')).map((path) => readFileSync(join(out, 'runes/v1/blocks', path), 'utf8'));
      const records = texts.reduce((sum, text) => sum + (JSON.parse(text) as { results: unknown[] }).results.length, 0);
      expect(records).toBe(manifest.records * (operationPages ? 2 : 1));
    }
  });

  it('without operation pages refuses the parameter, after all other faults, in both layouts', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1), record(5, 2, { operation: 'send' })]) });
    for (const layout of ['files', 'packed'] as const) {
      await testBuild(join(work, layout), { inputs: [join(work, 'a.ndjson')], layout, operationPages: false });
      const host = await startServer(join(work, layout));
      const messageOf = async (query: string) => {
        const { status, body } = await host.send('GET', `/runes/v1/blocks/5/activity?${query}`);
        return [status, (JSON.parse(body) as { message: string }).message];
      };
      expect(await messageOf('operation_type=send')).toEqual([
        400,
        'querystring/operation_type is not available: this mirror was built without lists by operation',
      ]);
      expect(await messageOf('operation_type=send&limit=0')).toEqual([400, 'querystring/limit must be >= 1']);
      expect(await messageOf('operation_type=x')).toEqual([400, expect.stringContaining('must be equal to constant')]);
      expect((await host.send('GET', `/runes/v1/transactions/${hex('tx 5 1')}/activity?operation_type=send`)).status).toBe(200);
      await host.close();
    }
  });

  it('has an index that a few lines of any language read', async () => {
    const out = await recordedOutput('packed', 'contract');
    const parsed = new Map<string, ReturnType<typeof JSON.parse>>();
    const json = (path: string) => {
      const value = parsed.get(path) ?? JSON.parse(readFileSync(join(out, 'runes/v1', path), 'utf8'));
      parsed.set(path, value);
      return value;
    };
    const { transaction_prefix, page_sizes, transactions } = json('manifest.json');
    const size = page_sizes.at(-1);
    let count = 0;
    for (const name of readdirSync(join(out, 'runes/v1/transactions'))) {
      for (const [id, [edition, first, total]] of Object.entries<[string, number, number]>(json(`transactions/${name}`).transactions)) {
        expect(`${id.slice(2, 2 + transaction_prefix)}.json`).toBe(name);
        const pages = [first, first + total - 1].map((at) => json(`blocks/${edition}/${size}/${at - (at % size)}.json`));
        for (const [i, at] of [first, first + total - 1].entries()) expect(pages[i].results[at % size].location.tx_id).toBe(id);
        count += 1;
      }
    }
    expect(count).toBe(transactions);
  });

  it('of one layout becomes one of the other, byte for byte as if it were new', async () => {
    const work = temporaryFolder();
    for (const layout of ['packed', 'files', 'packed'] as const) {
      await testBuild(join(work, 'out'), { inputs: [SAMPLE_INPUT], layout });
      await testBuild(join(work, layout), { inputs: [SAMPLE_INPUT], layout });
      expect(tree(join(work, 'out'))).toEqual(tree(join(work, layout)));
    }
  });
});

describe('the index', () => {
  const id = hex('tx');
  it('is refused when it is none', () => {
    expect(() => findEntry('<!doctype html>', id)).toThrow('not an index');
    expect(() => findEntry(`{"transactions":{\n"${id}":[1,2]\n}}\n`, id)).toThrow('not an index');
    expect(findEntry(`{"transactions":{\n}}\n`, id)).toBeUndefined();
    expect(findEntry(`{"transactions":{\n"${id}":["7-0a",1,2]\n}}\n`, id)).toEqual({ edition: '7-0a', first: 1, total: 2 });
    expect(findEntry(`{"transactions":{\n"0x${id}":["7-0x0a",1,2]\n}}\n`, id)).toEqual({ edition: '7-0x0a', first: 1, total: 2 });
    expect(findEntry(`{"transactions":{\n"0x${id}":["7-0x0a",1,2]\n}}\n`, hex('other'))).toBeUndefined();
  });

  it('is refused when a number in it is too large to be one', () => {
    const entry = (run: string) => `{"transactions":{\n"${id}":["7-0a",${run}]\n}}\n`;
    expect(() => findEntry(entry(`0,${'9'.repeat(17)}`), id)).toThrow('not an index');
    expect(() => findEntry(entry(`${'9'.repeat(400)},1`), id)).toThrow('not an index');
  });

  it.each([
    ['a path as edition', { edition: '7-0a/../../../../secret' }],
    ['a path that goes up', { edition: '../7-0a' }],
    ['a line after the edition', { edition: '7-0a\n' }],
    ['no edition', { edition: undefined }],
    ['a number as edition', { edition: 7 }],
    ['fewer than no records', { records: -1 }],
    ['half a record', { records: 1.5 }],
    ['records that are text', { records: '3' }],
    ['more records than can be counted', { records: 2 ** 53 }],
    ['an operation that is no number', { operations: { mint: '3' } }],
    ['operations of which there are fewer than none', { operations: { mint: -3 } }],
    ['no operations', { operations: null }],
  ])('has pointers, which are refused with %s', (_, change) => {
    const pointer = { edition: '7-0x0a', block_height: 7, block_hash: id, records: 3, transactions: 1, operations: { mint: 3 } };
    expect(readPointer(JSON.stringify(pointer))).toEqual({ edition: '7-0x0a', records: 3, operations: { mint: 3 } });
    expect(() => readPointer(JSON.stringify({ ...pointer, ...change }))).toThrow('not an index file or pointer');
    expect(() => readPointer(JSON.stringify(pointer).slice(1))).toThrow('not an index file or pointer');
  });

  it('is taken apart into entries and put together again', () => {
    const entries = [`"${hex('a')}":["7-0a",1,2]`, `"${hex('b')}":["8-0b",0,1]`];
    for (const count of [0, 1, 2]) expect(readShard(renderShard(entries.slice(0, count)))).toEqual(entries.slice(0, count));
    const text = renderShard(entries);
    expect(findEntry(text, hex('b'))).toEqual({ edition: '8-0b', first: 0, total: 1 });
    for (const damaged of ['', text.slice(1), text.slice(0, -1), text.replace('{\n', '{')])
      expect(() => readShard(damaged), damaged).toThrow('not an index');
  });

  it('is kept in memory up to a size and an age', async () => {
    const loads: string[] = [];
    const load = (path: string) => {
      loads.push(path);
      return Promise.resolve(path === 'none' ? undefined : 'x'.repeat(5 * 1024 * 1024));
    };
    const cache = new IndexCache(60_000);
    for (const path of ['a', 'b', 'c', 'a', 'd', 'a', 'b', 'none', 'none']) await cache.get(path, load);
    // The fourth pushes out the one that was not used for longest.
    expect(loads).toEqual(['a', 'b', 'c', 'd', 'b', 'none', 'none']);
    const stale = new IndexCache(-1);
    for (const path of ['a', 'a']) await stale.get(path, load);
    expect(loads.slice(-2)).toEqual(['a', 'a']);
  });
});
