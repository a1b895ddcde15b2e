/** Tests the sources of records, which are lists of blocks in the input, in the manifest, and in pulls from other mirrors. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rowsIndex } from '../../../src/contract/rowsSchemas.ts';
import { manifest as manifestSchema } from '../../../src/contract/schemas.ts';
import { blocksFile, joinSources, type Sources } from '../../../src/contract/sources.ts';
import { CONFORMANCE_INPUTS, failedBuild, RecordingLog, temporaryFolder, testBuild } from '../../support/build.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { indexWith } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { startServer } from '../../support/server.ts';

const blocks = fc
  .array(
    fc.tuple(fc.nat(30), fc.nat(6)).map(([first, more]): [number, number] => [first, first + more]),
    { minLength: 1, maxLength: 4 },
  )
  .map((runs) => runs.sort((a, b) => a[0] - b[0]));
const lists: fc.Arbitrary<Sources[]> = fc.array(
  fc.array(fc.record({ rules: fc.constantFrom('ord' as const, 'bitcoin-indexer' as const, 'server' as const), blocks }), { maxLength: 3 }),
  { maxLength: 4 },
);

it('joined lists give each height the rules of the first list that has it', () => {
  fc.assert(
    fc.property(lists, blocks, (given, within) => {
      const has = (runs: readonly (readonly [number, number])[], height: number) => runs.some(([a, b]) => a <= height && height <= b);
      // Keeps only ranges that do not overlap.
      const apart = within.filter(([first], i) => within.slice(0, i).every(([, last]) => last < first));
      const joined = joinSources(given, apart);
      for (let height = 0; height < 40; height++) {
        const expected = has(apart, height) ? given.flat().find((source) => has(source.blocks, height))?.rules : undefined;
        expect(joined.filter((source) => has(source.blocks, height)).map(({ rules }) => rules)).toEqual(expected ? [expected] : []);
      }
      for (const source of joined) {
        for (const [i, [first, last]] of source.blocks.entries()) {
          expect(first).toBeLessThanOrEqual(last);
          // Ranges without a gap between them must be joined.
          if (i > 0) expect(first).toBeGreaterThan((source.blocks[i - 1]?.[1] ?? 0) + 1);
        }
      }
    }),
  );
});

it('the network is a known one in every list and manifest, whatever text a stranger writes', () => {
  const known = ['main', 'signet', 'testnet4', 'regtest'];
  const texts = fc.oneof(fc.string(), fc.constantFrom(...known, '', '-', 'MAIN', 'main ', 'main\n', 'test', 'toString', '__proto__'));
  fc.assert(
    fc.property(texts, (network) => {
      const list = { sources: [], network };
      const found = manifestSchema.safeParse({ network }).error?.issues.some(({ path }) => path.join('.') === 'network');
      const accepted = [
        blocksFile.safeParse(list).success,
        rowsIndex.safeParse({ version: 1, ...list, spent: true, runes: [], files: [] }).success,
        !found,
      ];
      expect(accepted).toEqual(Array.from({ length: 3 }, () => known.includes(network)));
    }),
  );
});

describe('a build', () => {
  const inputWith = (text: string) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'index.json'), text);
    return folder;
  };

  it('reports in manifest and summary which blocks were read, even if only that changes', async () => {
    const out = join(temporaryFolder(), 'dist');
    const read = (last: number) =>
      indexWith({ sources: [{ rules: 'ord', blocks: [[840000, last]] }], tip: { height: last, hash: 'a'.repeat(64) } });
    const folder = inputWith(read(850000));
    const inputs = [...CONFORMANCE_INPUTS, folder];
    const log = new RecordingLog();
    const { manifest } = await testBuild(out, { inputs, log });
    expect(manifest.sources).toEqual([{ rules: 'ord', blocks: [[840000, 850000]] }]);
    expect(log.summaryRows.get('source')).toBe("Bitcoin Core by ord's rules (blocks 840000..850000)");
    expect((await testBuild(out, { inputs })).wasFull).toBe(false);
    writeFileSync(join(folder, 'index.json'), read(850001));
    await testBuild(out, { inputs });
    expect(JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')).sources[0].blocks).toEqual([[840000, 850001]]);
    // The range ends with blocks without records, whose hashes no file has.
    const some = await testBuild(out, { inputs, blocks: { from: 840000, to: 849999 } });
    expect(some.manifest.sources).toEqual([{ rules: 'ord', blocks: [[840000, some.manifest.tip?.height]] }]);
    expect(some.manifest.tip?.height).toBeLessThan(849999);
    expect(() => manifestSchema.parse(some.manifest)).not.toThrow();
    expect((await testBuild(out, { inputs: CONFORMANCE_INPUTS })).manifest.sources).toBeUndefined();
  });

  it.each([
    '{"sources":[{"rules":"mine","blocks":[[1,2]]}]}',
    '{"sources":[{"rules":"ord"',
    '{"sources":[{"rules":"ord","blocks":[[-1,2]]}]}',
    '{"sources":[{"rules":"ord","blocks":[[1,2]]}],"network":"main\\ntime 2000-01-01T00:00:00Z"}',
  ])('refuses a damaged list: %s', async (text) => {
    const error = await failedBuild(join(temporaryFolder(), 'dist'), { inputs: [...CONFORMANCE_INPUTS, inputWith(text)] });
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/index\.json (?:is damaged|is broken)/)]);
  });

  describe('of two pulls that overlap', () => {
    const [low, old, tip] = ['a', 'b', 'c'].map((digit) => digit.repeat(64));
    const list = (height: number, hash: unknown, ends: object) =>
      indexWith({ sources: [{ rules: 'ord', blocks: [[840000, height]] }], tip: { height, hash }, ends });
    const ends = [
      { height: 849_999, hash: low },
      { height: 850_000, hash: tip },
    ];

    it('has each block once in the list of changes, as in the pull that read more blocks', async () => {
      const out = join(temporaryFolder(), 'dist');
      const older = list(849_999, old, [{ height: 849_999, hash: old }]);
      for (const lists of [
        [older, list(850_000, tip, ends)],
        [list(850_000, tip, ends), older],
        [list(850_000, tip, ends), list(850_000, tip, ends)],
      ]) {
        const inputs = [...CONFORMANCE_INPUTS, ...lists.map(inputWith)];
        expect((await testBuild(out, { inputs, full: true })).manifest.tip).toEqual({ height: 850_000, hash: tip });
        const index = JSON.parse(readFileSync(join(out, 'runes/v1/changes/index.json'), 'utf8')) as {
          blocks: { height: number; hash: string }[];
        };
        const newest = index.blocks.filter(({ height }) => height >= 849_999).map(({ height, hash }) => ({ height, hash }));
        expect(newest).toEqual(ends.map(({ height, hash }) => ({ height, hash: `0x${hash}` })));
      }
    });

    it('is refused if their last blocks have one height and different hashes', async () => {
      const inputs = [...CONFORMANCE_INPUTS, inputWith(list(850_000, tip, ends)), inputWith(list(850_000, old, []))];
      const { exitCode, message } = await failedBuild(join(temporaryFolder(), 'dist'), { inputs });
      expect([exitCode, message]).toEqual([2, expect.stringMatching(/have different last blocks at height 850000$/)]);
    });
  });

  it('takes the highest record for the tip if a pull that has not ended replaced the last block of the list', async () => {
    const out = join(temporaryFolder(), 'dist');
    const { tip } = (await testBuild(out, { inputs: CONFORMANCE_INPUTS })).manifest;
    for (const old of [
      { height: tip?.height, hash: 'f'.repeat(64) },
      { height: 900_000, hash: tip?.hash },
    ]) {
      const text = indexWith({ sources: [{ rules: 'ord', blocks: [[840_000, 900_000]] }], tip: old, ends: [old] });
      const log = new RecordingLog();
      const { manifest } = await testBuild(out, { inputs: [...CONFORMANCE_INPUTS, inputWith(text)], log });
      expect(manifest.tip).toEqual(tip);
      expect(log.notices).toContainEqual(
        expect.stringContaining(`the index of rows is older than the records: its last block, ${old.height} (${old.hash}), was replaced`),
      );
      expect(readFileSync(join(out, 'runes/v1/changes/index.json'), 'utf8')).not.toMatch(/"height":900000|f{64}/);
    }
  });

  it('reads a list that another program formatted again', async () => {
    const list = { sources: [{ rules: 'ord', blocks: [[840_000, 850_000]] }], tip: { height: 850_000, hash: 'a'.repeat(64) } };
    const inputs = [...CONFORMANCE_INPUTS, inputWith(`\uFEFF${JSON.stringify(JSON.parse(indexWith(list)), null, 2)}`)];
    const { manifest } = await testBuild(join(temporaryFolder(), 'dist'), { inputs });
    expect([manifest.sources, manifest.tip?.height]).toEqual([list.sources, 850_000]);
  });

  it('of empty blocks that were read is an empty mirror; a build of no blocks is refused', async () => {
    const node = await FakeNode.start(
      extended([], 3, () => 0),
      { network: 'regtest' },
    );
    const [to, out] = [temporaryFolder(), join(temporaryFolder(), 'dist')];
    try {
      await testPull(`core:${node.url}`, to);
    } finally {
      await node.close();
    }
    const { manifest } = await testBuild(out, { inputs: [to] });
    expect(manifest).toMatchObject({ blocks: 0, records: 0, heights: [], sources: [{ rules: 'ord', blocks: [[0, 2]] }] });
    await check(out);
    const server = await startServer(out);
    try {
      expect((await server.send('GET', '/runes/v1/blocks/1/activity')).body).toBe('{"limit":20,"offset":0,"total":0,"results":[]}');
    } finally {
      await server.close();
    }
    writeFileSync(join(to, 'pulled/index.json'), '[]');
    expect((await failedBuild(out, { inputs: [to] })).message).toContain('has no activity records');
  });
});

it('a mirror of a mirror has the sources of the first mirror', async () => {
  const next = integersFor('a mirror of a mirror');
  const node = await FakeNode.start(extended([], 30, next), { network: 'regtest' });
  const [to, out, second, last] = [temporaryFolder(), join(temporaryFolder(), 'dist'), temporaryFolder(), join(temporaryFolder(), 'dist')];
  try {
    await testPull(`core:${node.url}`, to);
  } finally {
    await node.close();
  }
  const first = await testBuild(out, { inputs: [to], parquet: true });
  const server = await startServer(out);
  try {
    await testPull(`http://127.0.0.1:${server.port}`, second, { wanted: { from: 0, to: undefined } });
  } finally {
    await server.close();
  }
  const { manifest } = await testBuild(last, { inputs: [second] });
  expect(manifest.digest).toBe(first.manifest.digest);
  // Empty blocks have no file, but the source lists them, because the pull has read them.
  expect(manifest.blocks).toBeLessThan(29);
  expect(manifest.sources).toEqual([{ rules: 'ord', blocks: [[0, 29]] }]);
});
