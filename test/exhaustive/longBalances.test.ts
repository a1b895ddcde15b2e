/**
 * Tests long lists of balances and holders. The answers equal those of SQL, and their cost does not grow with the list.
 * The variable ENTRIES sets the lengths of the lists, and prints the cost of answers and of a new block:
 * ENTRIES=1000000 npm run test:exhaustive -- longBalances
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { cpuUsage, env } from 'node:process';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { PartCache } from '../../src/format/partCache.ts';
import type { Root } from '../../src/format/root.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { diskFiles, MANIFEST } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { LISTS, type ListName, LongBalances, TIP, WIDE } from '../support/longBalances.ts';
import { check } from '../support/outputs.ts';

const LENGTHS = (env['ENTRIES'] ?? '100,10000').split(',').map(Number);
const report = (line: string) => {
  if (env['ENTRIES'] !== undefined) console.log(line);
};

/** Cost of an answer when only the manifest and the root are in memory. */
interface Work {
  reads: number;
  /** Number of uncompressed characters. */
  inflated: number;
  /** Number of parsed values, including the values of directories. */
  parsed: number;
  /** Milliseconds of CPU time. */
  cpu: number;
}

describe.each(LENGTHS)('lists of %i entries', (entries) => {
  const work = temporaryFolder();
  const out = join(work, 'out');
  let lists: LongBalances;
  const options = () => ({ inputs: [lists.input], layout: 'archive', lists: true, memoryLimit: '2GB', threads: 2 }) as const;
  const balances = (): NonNullable<NonNullable<Root['lists']>['balances']> => {
    const tables = StoredArchive.in(out).root.lists?.balances;
    if (tables === undefined) throw new Error('the build has no balances');
    return tables;
  };

  beforeAll(async () => {
    lists = await LongBalances.in(work, entries);
    const begin = performance.now();
    await testBuild(out, options());
    report(`${entries} entries: built in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  }, 3_600_000);
  afterAll(() => lists.close());

  async function ask(path: string): Promise<Work & { readonly body: string }> {
    const site = siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')));
    const taken: Work = { reads: 0, inflated: 0, parsed: 0, cpu: 0 };
    const cache = new PartCache();
    const files = {
      ...diskFiles(out),
      read: async (name: string, offset: number, length: number) => {
        taken.reads += 1;
        const handle = openSync(join(out, name), 'r');
        const part = Buffer.alloc(length);
        const read = readSync(handle, part, 0, length, offset);
        closeSync(handle);
        return read === length ? part : undefined;
      },
      inflate: async (member: Uint8Array, most: number) => {
        const text = gunzipSync(member, { maxOutputLength: most }).toString();
        taken.inflated += text.length;
        return text;
      },
    };
    // Loads the root into memory. The mirror has no block of this height, so the request reads no other file.
    await respond('/runes/v1/blocks/16777210/activity', site, files, answerFromLists, cache);
    Object.assign(taken, { reads: 0, inflated: 0 });
    const parse = vi.spyOn(JSON, 'parse');
    const before = cpuUsage();
    const answer = await respond(`/runes/v1/${path}`, site, files, answerFromLists, cache);
    const { user, system } = cpuUsage(before);
    taken.parsed = parse.mock.calls.length;
    parse.mockRestore();
    if (answer.kind !== 'window') throw new Error(`${path} is answered by ${JSON.stringify(answer)}`);
    return { ...taken, cpu: (user + system) / 1000, body: answer.body };
  }

  /**
   * Checks that an answer reads at most a few pages and heads (a head lists the pages of one list), and reports its
   * cost.
   */
  function checkWork(what: string, { reads, inflated, parsed, cpu }: Work): void {
    report(
      `${entries} entries, ${what}: CPU ${cpu.toFixed(1)} ms, ${reads} reads, ${inflated} characters inflated, ${parsed} values parsed`,
    );
    expect([what, reads <= 30, inflated <= 2_000_000]).toEqual([what, true, true]);
    // Bound of parsed values: the head of a list has one value per page of 600 entries, a level has at most one page of
    // changes, and a window covers few pages.
    expect([what, parsed <= entries / 600 + 3 * 600 + 5 * 600 + 20]).toEqual([what, true]);
  }

  async function checkList(name: ListName, height: number, tip: number): Promise<void> {
    const { total } = await lists.window(name, 0, 1, height);
    for (const offset of [0, 17, Math.floor(total / 2), Math.max(total - 30, 0), total]) {
      const expected = await lists.window(name, offset, 60, height);
      const path = `${LISTS[name]}?limit=60&offset=${offset}`;
      // The first request also compiles functions, so only the second one is measured.
      await ask(path);
      const answer = await ask(path);
      const found = JSON.parse(answer.body) as { results: { rune?: { id: string }; address: string; balance: string }[] };
      const results = found.results.map(({ rune, address, balance }) => [rune?.id ?? address, balance]);
      expect({ ...found, results }).toEqual({ limit: 60, offset, ...expected, ...(height === tip ? {} : { block_height: height }) });
      checkWork(`${name}, offset ${offset}`, answer);
    }
  }

  async function checkAll(tip: number): Promise<void> {
    for (const name of Object.keys(LISTS) as ListName[]) {
      // If more than a page of entries of a long list change in the newest level, the archive has only the list after
      // an older block. A short list is always written again for the newest level.
      const isOld = name === 'holders of a rune etched in the level below' && entries > 600;
      await checkList(name, isOld ? 4479 : tip, tip);
    }
    for (const path of [
      `etchings/1000:1/holders/bc1qh${Math.floor(entries / 2)}`,
      `etchings/1001:50/holders/${WIDE}`,
      `etchings/50/holders/${WIDE}`,
    ]) {
      await ask(path);
      const answer = await ask(path);
      expect(JSON.parse(answer.body)).toMatchObject({ balance: expect.stringMatching(/^[1-9][0-9]*$/) });
      checkWork(path, answer);
    }
  }

  it('equal those of SQL, and no answer reads more than a few pages', () => checkAll(TIP), 3_600_000);

  it('equal them after a new block, which writes only the newest level and gives the files of a full build', async () => {
    const before = balances();
    await lists.addBlock();
    const begin = performance.now();
    expect(await testBuild(out, options())).toMatchObject({ wasFull: false });
    const after = balances();
    for (const kind of ['addresses', 'holders'] as const) {
      expect(after[kind].slice(0, -1)).toEqual(before[kind].slice(0, -1));
      const written = after[kind].at(-1)?.files.reduce((sum, { bytes }) => sum + bytes, 0);
      report(
        `${entries} entries: the next block took ${((performance.now() - begin) / 1000).toFixed(1)} s, and wrote ${written} bytes of ${kind}`,
      );
    }
    await checkAll(TIP + 1);
    await testBuild(join(work, 'full'), options());
    expect(tree(out)).toEqual(tree(join(work, 'full')));
    await check(out);
  }, 3_600_000);
});
