/** Tests long lists of balances and holders. The answers equal those of SQL, and their cost does not grow with the list. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import type { Root } from '../../../src/format/root.ts';
import { type BuiltSite, siteOf } from '../../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer, MANIFEST } from '../../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { LISTS, type ListName, LongBalances, TIP, WIDE } from '../../support/longBalances.ts';
import { check } from '../../support/outputs.ts';
import { readsOf } from '../../support/rounds.ts';

describe.each([100, 10_000])('lists of %i entries', (entries) => {
  const work = temporaryFolder();
  const out = join(work, 'out');
  let lists: LongBalances;
  let site: BuiltSite;
  const options = () => ({ inputs: [lists.input], layout: 'archive', lists: true, memoryLimit: '2GB', threads: 2 }) as const;
  const balances = (): NonNullable<NonNullable<Root['lists']>['balances']> => {
    const tables = StoredArchive.in(out).root.lists?.balances;
    if (tables === undefined) throw new Error('the build has no balances');
    return tables;
  };

  beforeAll(async () => {
    lists = await LongBalances.in(work, entries);
    await testBuild(out, options());
    site = siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')));
  }, 3_600_000);
  afterAll(() => lists.close());

  /** Returns an answer, after a check that it reads at most a few pages and heads (a head lists the pages of one list). */
  async function ask(path: string): Promise<unknown> {
    const { reads, inflated, parsed } = await readsOf(`/runes/v1/${path}`, site, out);
    // Bound of parsed values: the head of a list has one value per page of 600 entries, a level has at most one page of
    // changes, and a window covers few pages.
    const isFew = [reads <= 30, inflated <= 2_000_000, parsed <= entries / 600 + 3 * 600 + 5 * 600 + 20];
    expect([path, ...isFew]).toEqual([path, true, true, true]);
    return (await new FetchMirror(fileServer(out).fetchFile, 0).answer(new Request(`http://host/runes/v1/${path}`)))?.json();
  }

  async function checkList(name: ListName, height: number, tip: number): Promise<void> {
    const { total } = await lists.window(name, 0, 1, height);
    for (const offset of [0, 17, Math.floor(total / 2), Math.max(total - 30, 0), total]) {
      const expected = await lists.window(name, offset, 60, height);
      type Found = { results: { rune?: { id: string }; address: string; balance: string }[] };
      const found = (await ask(`${LISTS[name]}?limit=60&offset=${offset}`)) as Found;
      const results = found.results.map(({ rune, address, balance }) => [rune?.id ?? address, balance]);
      expect({ ...found, results }).toEqual({ limit: 60, offset, ...expected, ...(height === tip ? {} : { block_height: height }) });
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
    ])
      expect(await ask(path)).toMatchObject({ balance: expect.stringMatching(/^[1-9][0-9]*$/) });
  }

  it('equal those of SQL, and no answer reads more than a few pages', () => checkAll(TIP), 3_600_000);

  it('equal them after a new block, which writes only the newest level and gives the files of a full build', async () => {
    const before = balances();
    await lists.addBlock();
    expect(await testBuild(out, options())).toMatchObject({ wasFull: false });
    site = siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')));
    const after = balances();
    for (const kind of ['addresses', 'holders'] as const) expect(after[kind].slice(0, -1)).toEqual(before[kind].slice(0, -1));
    await checkAll(TIP + 1);
    await testBuild(join(work, 'full'), options());
    expect(tree(out)).toEqual(tree(join(work, 'full')));
    await check(out);
  }, 3_600_000);
});
