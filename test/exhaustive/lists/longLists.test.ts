/** Tests lists of thousands of entries. The cost of an answer depends only on its window. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeManyOutputs } from '../../../bench/manyOutputs.ts';
import { siteOf } from '../../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer, MANIFEST } from '../../support/archives.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { check } from '../../support/outputs.ts';
import { readsOf } from '../../support/rounds.ts';

/** Blocks in three levels of lists (src/format/levels.ts). */
const [FIRST, TIP] = [4000, 4040];

/** The only address of a chain with one address. */
const ADDRESS = `bc1q${createHash('sha256').update('address 0').digest('hex').slice(0, 38)}`;

interface Answer {
  readonly total: number;
  readonly results: readonly { readonly address?: string; readonly rune?: { readonly id: string }; readonly output?: string }[];
}

it.each([
  ['holders', { runes: 1, addresses: 9000 }, 'etchings/1:1/holders'],
  ['balances', { runes: 9000, addresses: 1 }, `addresses/${ADDRESS}/balances`],
  ['outputs', { runes: 9000, addresses: 1 }, `addresses/${ADDRESS}/outputs`],
])('of %s, an answer reads at most 30 parts and 2 MB, and all windows have each entry once', async (_, numbers, list) => {
  const work = temporaryFolder();
  const [out, input] = [join(work, 'out'), join(work, 'in')];
  const options = { inputs: [input], layout: 'archive', lists: true, objectSize: 8 * 1024 * 1024 } as const;
  const form = { first: FIRST, last: TIP - 1, transactions: 400, ...numbers };
  await writeManyOutputs(input, form);
  await testBuild(out, options);
  await writeManyOutputs(input, { ...form, last: TIP }, TIP);
  expect(await testBuild(out, options)).toMatchObject({ wasFull: false });
  // Verification makes the lists again from the records.
  await check(out);

  const target = (offset: number, limit: number) => `/runes/v1/${list}?offset=${offset}&limit=${limit}`;
  const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
  const ask = async (offset: number) => (await (await mirror.answer(new Request(`http://host${target(offset, 60)}`)))?.json()) as Answer;
  const { total } = await ask(0);
  expect(total).toBeGreaterThan(2000);
  const site = siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')));
  for (const offset of [0, Math.floor(total / 2), total - 30]) {
    const { reads, inflated } = await readsOf(target(offset, 60), site, out);
    expect([offset, reads <= 30, inflated <= 2_000_000]).toEqual([offset, true, true]);
  }
  const all = new Set<string | undefined>();
  for (let offset = 0; offset < total; offset += 60)
    for (const { address: holder, rune, output } of (await ask(offset)).results) all.add(output ?? rune?.id ?? holder);
  expect(all.size).toBe(total);
});
