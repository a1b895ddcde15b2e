/**
 * Tests etchings in layout `archive`. The answers equal those of layout `files`, and take three rounds of reads: reads
 * that run at the same time are one round. Damaged files never cause wrong answers.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ListTables } from '../../src/format/listTables.ts';
import { parseRoot } from '../../src/format/root.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { contentOf, fileServer, MANIFEST } from '../support/archives.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { ETCHING_INPUTS } from '../support/etchingVectors.ts';
import { check } from '../support/outputs.ts';
import { readsOf } from '../support/rounds.ts';
import { randomFor } from '../support/seed.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const BUILDS = {
  files: { layout: 'files' },
  small: { layout: 'archive', objectSize: 4096 },
  ranges: { layout: 'archive', objectSize: 2 * 1024 * 1024 },
} as const;

const siteAt = (name: string) => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));

function tablesOf(name: string): ListTables {
  const root = siteAt(name).listRoot?.root ?? '';
  const { lists } = parseRoot(gunzipSync(contentOf(at(name), root)).toString());
  if (lists === undefined) throw new Error('the archive has no lists');
  return lists;
}

const PATH = '/runes/v1/etchings';
const targets = [
  PATH,
  ...[0, 1, 19, 33, 60, 63, 64, 70].flatMap((offset) => [`${PATH}?limit=20&offset=${offset}`, `${PATH}?limit=3&offset=${offset}`]),
  ...['1:0', '840029:6', '14', '65', 'V', 'iyacrqiukfatvu', '840010:5', '40', 'NOSUCHRUNE'].map((rune) => `${PATH}/${rune}`),
];
const ask = async (mirror: FetchMirror, target: string) => {
  const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
  return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
};

beforeAll(async () => {
  for (const [name, build] of Object.entries(BUILDS))
    await testBuild(at(name), { inputs: ETCHING_INPUTS, pageSizes: [2, 7, 20], ...build });
});

describe.each(['small', 'ranges'] as const)('etchings of an archive, %s', (name) => {
  it('equal those of layout files', async () => {
    const [files, archive] = ['files', name].map((each) => new FetchMirror(fileServer(at(each)).fetchFile, 0));
    for (const target of targets) expect(await ask(archive as FetchMirror, target)).toBe(await ask(files as FetchMirror, target));
    expect(tablesOf(name).etchings?.levels.flatMap(({ files }) => files).length).toBeGreaterThan(name === 'small' ? 3 : 0);
  });

  it('take at most three rounds of reads after the manifest and the root', async () => {
    for (const target of targets) {
      const { rounds } = await readsOf(target, siteAt(name), at(name));
      expect([target, rounds <= 3]).toEqual([target, true]);
    }
  });

  it('of a damaged file are right or a 503, and verification finds the damage', async () => {
    const random = randomFor(`etchings of ${name}`);
    const { etchings, names } = tablesOf(name);
    const right = new FetchMirror(fileServer(at(name)).fetchFile, 0);
    const expected = await Promise.all(targets.map((target) => ask(right, target)));
    let refused = 0;
    for (const file of [
      ...(etchings?.levels.flatMap(({ files }) => files.map(({ file }) => file)) ?? []),
      ...names.flatMap(({ files }) => files),
    ].slice(0, 8)) {
      const path = `archive/${file}.bin`;
      const [place, bits] = [random(), 1 + Math.floor(random() * 255)];
      const damage = (content: Buffer) => {
        const copy = Buffer.from(content);
        const where = Math.floor(place * content.length);
        copy[where] = (copy[where] ?? 0) ^ bits;
        return copy;
      };
      const mirror = new FetchMirror(fileServer(at(name), (asked, content) => (asked === path ? damage(content) : content)).fetchFile, 0);
      for (const [i, target] of targets.entries()) {
        const answer = await ask(mirror, target);
        if (answer === '503') refused += 1;
        else expect(answer, `${target} with ${path} damaged at ${place}`).toBe(expected[i]);
      }
      const before = readFileSync(join(at(name), path));
      writeFileSync(join(at(name), path), damage(before));
      const error = await check(at(name)).catch((caught: unknown) => caught);
      writeFileSync(join(at(name), path), before);
      expect(error).toBeInstanceOf(VerificationError);
      expect((error as VerificationError).details).toContainEqual(expect.stringContaining(path));
    }
    expect(refused).toBeGreaterThan(0);
  });
});
