/** Verification of the recorded data, and of changes of any byte. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DIALECTS, ENCODINGS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { check, expectCompressedPages, isPage } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';

const work = temporaryFolder();

describe('what a build made', () => {
  it.each(DIALECTS)(
    'is whole: the recorded data in dialect %s, in each layout, compressed, and without lists by operation',
    async (dialect) => {
      for (const layout of LAYOUTS) {
        const [out, plain] = [join(temporaryFolder(), 'out'), join(temporaryFolder(), 'plain')];
        const options = { inputs: CONFORMANCE_INPUTS, dialect, layout, pageSizes: [10, 25, 60] };
        await testBuild(out, { ...options, compress: layout === 'files' ? ENCODINGS : [] });
        await testBuild(plain, { ...options, operationPages: false });
        for (const folder of [out, plain]) {
          const { files, manifest } = await check(folder);
          expect(files).toBe(manifest.files);
        }
        if (layout === 'files') expectCompressedPages(out);
        const pages = Object.entries(tree(plain)).filter(([path]) => isPage(path));
        expect(tree(out)).toMatchObject(Object.fromEntries(pages));
      }
    },
  );
});

describe('verification finds', () => {
  it.each(LAYOUTS)('any byte that changes in any file, and any file that goes, in layout %s', async (layout) => {
    const out = join(work, `bytes-${layout}`);
    const many = Array.from({ length: 70 }, (_, i) => record(5, 1, { amount: `${i}`, operation: i % 2 === 0 ? 'send' : 'receive' }));
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 2), ...many, record(6, 1), record(2005, 1)]) });
    await testBuild(out, { inputs: [join(work, 'a.ndjson')], layout });
    const paths = filesBelow(out);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(paths.length - 1),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        fc.boolean(),
        async (file, at, difference, goes) => {
          const path = join(out, paths[file] ?? '');
          const before = readFileSync(path);
          const after = Buffer.from(before);
          after[at % after.length] = (after[at % after.length] ?? 0) ^ difference;
          if (goes) rmSync(path);
          else writeFileSync(path, after);
          const found = await findingsOf(out);
          writeFileSync(path, before);
          expect(found.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 100 },
    );
    await check(out);
  });
});

/** What verification says of an output. */
const findingsOf = (out: string): Promise<readonly string[]> =>
  check(out).then(
    () => [],
    (error: unknown) => {
      if (error instanceof VerificationError) return error.details;
      throw error;
    },
  );
