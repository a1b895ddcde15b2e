/** Tests the names of all runes. In every mirror that has etchings, they equal the names of the etchings after every block. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Dialect, Layout } from '../../../src/pages/mirrorOptions.ts';
import type { RuneName } from '../../../src/serve/client/client.d.ts';
import { MANIFEST } from '../../support/archives.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { Mirror } from '../../support/bundledClient.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { limitsWith } from '../../support/limits.ts';
import { fetchOver, KEY, readFiles, signedFiles } from '../../support/lyingHost.ts';
import { writeRows } from '../../support/nodeRows.ts';
import { grown } from '../../support/outputStates.ts';
import { check } from '../../support/outputs.ts';
import { ndjson, record } from '../../support/records.ts';
import { memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const BASE = 'http://mirror.example';

async function namesOf(mirror: Mirror): Promise<RuneName[]> {
  const all: RuneName[] = [];
  for await (const rune of mirror.runes()) all.push(rune);
  return all;
}

/** Returns the names from the pages of the list of etchings. They must equal those of `namesOf`. */
async function listed(mirror: Mirror): Promise<RuneName[]> {
  const all: RuneName[] = [];
  for (let offset = 0; ; offset += 60) {
    const { total, results } = await mirror.etchings({ offset, limit: 60 });
    for (const { id, number, name, spaced_name, divisibility, symbol } of results)
      all.push({ id, number, name, spaced_name, divisibility, symbol });
    if (offset + 60 >= total) return all.reverse();
  }
}

const mirrorOf = (out: string, options = {}) => {
  const files = readFiles(out);
  return new Mirror(BASE, { fetch: fetchOver((path) => files.get(path)), ...options });
};

describe('names of all runes', () => {
  it.each<[Layout, Dialect, number]>([
    ['archive', 'hiro', 8 * 1024 * 1024],
    ['files', 'contract', 4096],
  ])('equal the etchings after every block, and old levels stay: layout %s, dialect %s', async (layout, dialect, objectSize) => {
    const draw = integersFor(`names in ${layout}`);
    const [work, limits] = [temporaryFolder(), limitsWith({ runesMember: 200, listLevels: { steps: [24, 8, 4], unsettled: 2 } })];
    const [input, out] = [join(work, 'in'), join(work, 'out')];
    let chain = grown([], 30, draw);
    let before: string[] = [];
    for (let step = 0; step < 3; step += 1) {
      writeRows(memoryOf(chain), input);
      await testBuild(out, { inputs: [input], layout, dialect, limits, objectSize });
      await check(out);
      const names = await namesOf(mirrorOf(out));
      expect(names.length).toBeGreaterThan(3);
      expect(names).toEqual(await listed(mirrorOf(out)));
      const files = filesBelow(join(out, 'archive'));
      if (step > 0) expect(files.filter((file) => before.includes(file)).length).toBeGreaterThan(0);
      before = files;
      chain = grown(chain.slice(0, -1), 2, draw);
    }
  });

  it('have the symbols and spacers of the input, and are proven with keys', async () => {
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { inputs: [SAMPLE_INPUT], layout: 'archive' });
    const names = await namesOf(mirrorOf(out));
    expect(names.find(({ id }) => id === '840000:3')).toEqual({
      id: '840000:3',
      number: 3,
      name: 'DOGGOTOTHEMOON',
      spaced_name: 'DOG•GO•TO•THE•MOON',
      divisibility: 5,
      symbol: '🐕',
    });
    const files = signedFiles(readFiles(out), new Date().toISOString());
    const keyed = (lie: (path: string, file: Buffer) => Buffer) =>
      new Mirror(BASE, {
        fetch: fetchOver((path) => (files.has(path) ? lie(path, files.get(path) ?? Buffer.alloc(0)) : undefined)),
        keys: [KEY.publicText],
      });
    expect(await namesOf(keyed((_, file) => file))).toEqual(names);
    const flipped = (path: string, file: Buffer) =>
      path.startsWith('archive/') ? Buffer.from(file.map((byte, i) => (i === 30 ? byte ^ 1 : byte))) : file;
    await expect(namesOf(keyed(flipped))).rejects.toMatchObject({ name: 'MirrorError', statusCode: 503 });
  });

  it('are 501 in a mirror without etchings, and 503 if a file is missing', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout: 'archive' });
    await expect(namesOf(mirrorOf(join(work, 'out')))).rejects.toMatchObject({
      statusCode: 501,
      message: expect.stringContaining('does not have etchings'),
    });
    await testBuild(join(work, 'sample'), { inputs: [SAMPLE_INPUT], layout: 'archive' });
    const files = readFiles(join(work, 'sample'));
    const fetch = fetchOver((path) => (path === MANIFEST ? files.get(path) : undefined));
    await expect(namesOf(new Mirror(BASE, { fetch }))).rejects.toMatchObject({ name: 'MirrorError', statusCode: 503 });
  });
});
