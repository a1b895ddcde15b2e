/**
 * Tests balances and holders in archives: how many rounds of reads an answer takes, and what happens if files are
 * damaged or have wrong content. Reads that run at the same time are one round.
 */

import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { gzipMember } from '../../src/engine/render/compress.ts';
import { filesIn } from '../../src/engine/writeArchive.ts';
import type { BalanceTables } from '../../src/format/listTables.ts';
import { parseRoot, type Root, renderRoot } from '../../src/format/root.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { contentOf, fileServer, MANIFEST, putFile } from '../support/archives.ts';
import { BalanceHistory } from '../support/balanceHistory.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { limitsWith } from '../support/limits.ts';
import { check } from '../support/outputs.ts';
import { readsOf } from '../support/rounds.ts';
import { randomFor } from '../support/seed.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const BUILDS = { small: 4096, ranges: 2 * 1024 * 1024 } as const;
const history = new BalanceHistory(randomFor('balances of archives'), false);

const siteAt = (name: string) => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));
const rootAt = (name: string): Root => parseRoot(gunzipSync(contentOf(at(name), `${siteAt(name).archive?.root}`)).toString());

const ask = async (mirror: FetchMirror, target: string) => {
  const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
  return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
};

const build = (name: string, objectSize: number) =>
  testBuild(at(name), {
    inputs: [at('in')],
    layout: 'archive',
    lists: true,
    pageSizes: [2, 7],
    limits: limitsWith({ listPage: 3 }),
    objectSize,
  });

const targets: string[] = [];

beforeAll(async () => {
  // Appends blocks until all four levels of lists have blocks.
  while (history.tip < 4300) history.append();
  for (let i = 0; i < 40 || (history.tip - 7) % 144 < 32; i += 1) history.append(1);
  history.write(at('in'));
  for (const [name, objectSize] of Object.entries(BUILDS)) await build(name, objectSize);
  for (const { name, number } of history.runes.slice(0, 12)) {
    targets.push(`/runes/v1/etchings/${name}/holders?limit=7`, `/runes/v1/etchings/${number}/holders?limit=7&offset=5`);
    for (const address of history.addresses.slice(0, 3)) targets.push(`/runes/v1/etchings/${number}/holders/${address}`);
  }
  for (const address of history.addresses) targets.push(`/runes/v1/addresses/${encodeURIComponent(address)}/balances?limit=7`);
  targets.push('/runes/v1/addresses/nobody/balances', '/runes/v1/etchings/NOSUCHRUNE/holders');
});

describe.each(['small', 'ranges'] as const)('balances of an archive, %s', (name) => {
  it('are in levels of all kinds', () => {
    const { balances } = rootAt(name).lists ?? {};
    expect(balances?.addresses.length).toBe(4);
    expect(balances?.holders.length).toBe(4);
  });

  it('take at most three rounds of reads after the manifest and the root', async () => {
    for (const target of targets) {
      const { rounds } = await readsOf(target, siteAt(name), at(name));
      expect([target, rounds <= (target.includes('/holders?') ? 3 : 2)]).toEqual([target, true]);
    }
  });

  it('of a damaged file are right or a 503, and verification finds the damage', async () => {
    const random = randomFor(`balances of ${name}`);
    const right = new FetchMirror(fileServer(at(name)).fetchFile, 0);
    const expected = await Promise.all(targets.map((target) => ask(right, target)));
    let refused = 0;
    for (const [i, [file]] of filesIn(rootAt(name).lists).slice(0, 16).entries()) {
      const path = `archive/${file}.bin`;
      const [place, bits] = [random(), 1 + Math.floor(random() * 255)];
      const damage = (content: Buffer) => {
        const where = Math.floor(place * content.length);
        if (i % 4 === 3) return content.subarray(0, where);
        const copy = Buffer.from(content);
        copy[where] = (copy[where] ?? 0) ^ bits;
        return copy;
      };
      const mirror = new FetchMirror(fileServer(at(name), (asked, content) => (asked === path ? damage(content) : content)).fetchFile, 0);
      for (const [j, target] of targets.entries()) {
        const answer = await ask(mirror, target);
        if (answer === '503') refused += 1;
        else expect(answer, `${target} with ${path} damaged at ${place}`).toBe(expected[j]);
      }
      const before = readFileSync(join(at(name), path));
      writeFileSync(join(at(name), path), damage(before));
      const error = await check(at(name)).catch((caught: unknown) => caught);
      writeFileSync(join(at(name), path), before);
      expect(error).toBeInstanceOf(VerificationError);
    }
    expect(refused).toBeGreaterThan(0);
  });
});

it('a damaged file that an incremental build needs causes a full build', async () => {
  await build('old', BUILDS.ranges);
  // Damages a file of each of the newest two levels, because the heights decide which of them the next build merges.
  for (const { files } of rootAt('old').lists?.balances?.addresses.slice(-2) ?? []) {
    const path = join(at('old'), 'archive', `${files[0]?.file}.bin`);
    const content = readFileSync(path);
    content[content.length >> 1] = (content[content.length >> 1] ?? 0) ^ 1;
    writeFileSync(path, content);
  }
  history.append(1);
  history.write(at('in'));
  expect((await build('old', BUILDS.ranges)).wasFull).toBe(true);
  await build('fresh', BUILDS.ranges);
  expect(tree(at('old'))).toEqual(tree(at('fresh')));
});

describe('verification', () => {
  /** Replaces the lists in the root of an archive, and copies their files from other builds. */
  function replaceLists(name: string, lists: Root['lists'], ...from: readonly string[]): void {
    const [out, root] = [at(name), rootAt(name)];
    const old = `${siteAt(name).archive?.root}`;
    for (const path of filesIn(lists).map(([file]) => join('archive', `${file}.bin`))) {
      const source = from.find((one) => existsSync(join(at(one), path)));
      if (source !== undefined) copyFileSync(join(at(source), path), join(out, path));
    }
    const content = gzipMember(Buffer.from(renderRoot({ ...root, lists })));
    const manifest = readFileSync(join(out, MANIFEST), 'utf8').replace(old, putFile(out, content));
    writeFileSync(join(out, MANIFEST), manifest.replace(/("archive": \{[^}]*"bytes": )[0-9]+/, `$1${content.length}`));
  }

  const detailsOf = async (name: string) => {
    const error = await check(at(name)).catch((caught: unknown) => caught);
    return error instanceof VerificationError ? error.details.join('\n') : 'right';
  };

  it('finds balances that the records do not have', async () => {
    await build('wrong', BUILDS.ranges);
    expect(await detailsOf('wrong')).toBe('right');
    // Makes another chain, which differs only by a receipt in the highest block.
    history.blocks
      .get(history.tip)
      ?.events.push({ rune: `${history.runes[0]?.id}`, operation: 'receive', address: 'bc1qthief', amount: 7n, tx: 99 });
    history.write(at('in'));
    await build('thief', BUILDS.ranges);
    const [right, thief] = [rootAt('wrong').lists, rootAt('thief').lists];
    if (right?.balances === undefined || thief?.balances === undefined) throw new Error('the builds have balances');
    const { addresses, holders } = thief.balances;
    const { balances } = right;
    const wrong = async (changed: Partial<BalanceTables>) => {
      replaceLists('wrong', { ...right, balances: { ...balances, ...changed } }, 'ranges', 'thief');
      return detailsOf('wrong');
    };
    expect(await wrong({ addresses })).toContain('has wrong balances of the address bc1qthief');
    expect(await wrong({ holders })).toContain('has wrong holders of the rune with the ordinal 00000000');
    expect(await wrong({ holders: balances.holders.slice(1) })).toContain('has wrong holders of the rune with the ordinal 00000000');
    expect(await wrong({ unbalanced: { runes: [`${history.runes[0]?.id}`], more: 0 } })).toContain('other unbalanced runes');
    replaceLists('wrong', { ...right, balances: undefined });
    expect(await detailsOf('wrong')).toContain('lacks balances, which its data allows');
  });
});
