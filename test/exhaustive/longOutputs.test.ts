/**
 * Tests an address with very many unspent outputs. The cost of an answer depends only on its window. The variable
 * OUTPUTS sets their number, and prints the cost of the build, of a new block and of answers: OUTPUTS=1000000.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { measure } from '../../bench/answers.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { LONG_ADDRESS, writeLongOutputs } from '../support/longOutputs.ts';
import { addedTo, check } from '../support/outputs.ts';
import { readsOf } from '../support/rounds.ts';

const BY_HAND = process.env['OUTPUTS'];

/** Height of the last block. 71 blocks in three levels of lists (src/format/levels.ts) spend outputs. */
const TIP = 4100;

interface Answer {
  readonly total: number;
  readonly results: readonly { readonly output: string; readonly location: { readonly block_height: number } }[];
}

it.each(BY_HAND === undefined ? [100, 10_000] : [Number(BY_HAND)])(
  'of %d outputs, an answer reads at most 30 parts and 2 MB, and no other outputs than those of its pages',
  async (outputs) => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const options = { inputs: [input], dialect: 'hiro', layout: 'archive', lists: true, objectSize: 8 * 1024 * 1024 } as const;
    const each = Math.min(Math.ceil(outputs / 100), 500);
    await writeLongOutputs(input, outputs, each, 0, TIP - 1);
    let before: Record<string, string> = {};
    const built = async (name: string) => {
      const [begin, cpu] = [performance.now(), process.cpuUsage()];
      await testBuild(out, options);
      const { user, system } = process.cpuUsage(cpu);
      const seconds = [(performance.now() - begin) / 1000, (user + system) / 1e6].map((one) => one.toFixed(1));
      const after = tree(out);
      const files = addedTo(before, after);
      before = after;
      const bytes = files.reduce((sum, path) => sum + statSync(join(out, path)).size, 0);
      if (BY_HAND !== undefined)
        console.log(
          `${name}: ${seconds[0]} s, ${seconds[1]} s of CPU, ${files.length} files, ${bytes} bytes, peak ${process.resourceUsage().maxRSS} kB`,
        );
    };
    await built('build');
    await writeLongOutputs(input, outputs, each, TIP, TIP);
    await built('a new block');
    if (outputs <= 10_000) await check(out);

    const target = (offset: number, limit: number) => `/runes/v1/addresses/${LONG_ADDRESS}/outputs?offset=${offset}&limit=${limit}`;
    for (const offset of [0, Math.floor(outputs / 2), outputs - 30]) {
      for (const limit of [20, 60]) {
        const { reads, inflated, ...others } = await readsOf(
          target(offset, limit),
          siteOf(JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8'))),
          out,
        );
        expect(reads).toBeLessThanOrEqual(30);
        expect(inflated).toBeLessThanOrEqual(2_000_000);
        if (BY_HAND === undefined) continue;
        console.log(`offset ${offset}, limit ${limit}: ${reads} reads, ${inflated} characters inflated, ${JSON.stringify(others)}`);
        const { p50, p99 } = await measure(
          out,
          '',
          Array.from({ length: 50 }, () => target(offset, limit)),
          true,
        );
        console.log(`  CPU ${p50} ms, 99 % ${p99} ms`);
      }
    }
    if (outputs > 10_000) return;
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
  BY_HAND === undefined ? 600_000 : 3_600_000,
);
