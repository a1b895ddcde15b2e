/** Tests an address with very many unspent outputs. The cost of an answer depends only on its window. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { siteOf } from '../../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer, MANIFEST } from '../../support/archives.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { LONG_ADDRESS, writeLongOutputs } from '../../support/longOutputs.ts';
import { check } from '../../support/outputs.ts';
import { readsOf } from '../../support/rounds.ts';

/** Height of the last block. 71 blocks in three levels of lists (src/format/levels.ts) spend outputs. */
const TIP = 4100;

interface Answer {
  readonly total: number;
  readonly results: readonly { readonly output: string; readonly location: { readonly block_height: number } }[];
}

it.each([100, 10_000])(
  'of %d outputs, an answer reads at most 30 parts and 2 MB, and no other outputs than those of its pages',
  async (outputs) => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const options = { inputs: [input], dialect: 'hiro', layout: 'archive', lists: true, objectSize: 8 * 1024 * 1024 } as const;
    const each = Math.min(Math.ceil(outputs / 100), 500);
    await writeLongOutputs(input, outputs, each, 0, TIP - 1);
    await testBuild(out, options);
    await writeLongOutputs(input, outputs, each, TIP, TIP);
    await testBuild(out, options);
    await check(out);

    const target = (offset: number, limit: number) => `/runes/v1/addresses/${LONG_ADDRESS}/outputs?offset=${offset}&limit=${limit}`;
    for (const offset of [0, Math.floor(outputs / 2), outputs - 30]) {
      for (const limit of [20, 60]) {
        const { reads, inflated } = await readsOf(
          target(offset, limit),
          siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8'))),
          out,
        );
        expect(reads).toBeLessThanOrEqual(30);
        expect(inflated).toBeLessThanOrEqual(2_000_000);
      }
    }
    const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
    const all: string[] = [];
    for (let offset = 0; offset < outputs; offset += 60) {
      const answer = (await (await mirror.answer(new Request(`http://host${target(offset, 60)}`)))?.json()) as Answer;
      expect([answer.total, answer.results.length]).toEqual([outputs, Math.min(60, outputs - offset)]);
      for (const { output, location } of answer.results) {
        const [txId = '', vout = ''] = output.split(':');
        all.push(`${String(10_000 - location.block_height).padStart(5)} ${txId} ${vout.padStart(5)}`);
      }
    }
    expect(new Set(all).size).toBe(outputs);
    expect(all).toEqual([...all].sort());
  },
);
