/**
 * Checks that verification reads every file of an archive with all lists. So a new list cannot be added without a check of its files.
 * Verification reads complete files, so it notices a wrong byte in any content or tail.
 */
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { describe } from '../../src/engine/writeArchive.ts';
import { archivePath } from '../../src/pages/filePaths.ts';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { writeRows } from '../support/nodeRows.ts';
import { check } from '../support/outputs.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

it.each(LAYOUTS)('verification reads every file of the archive, layout %s', async (layout) => {
  const [work, next] = [temporaryFolder(), randomFor('files that verification reads')];
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  writeRows(memoryOf(extended([], 24, (below) => Math.floor(next() * below), 3)), input);
  const { manifest } = await testBuild(out, { inputs: [input], layout, lists: true });
  expect(Object.keys(manifest.lists ?? {})).toHaveLength(6);
  const { name, root } = StoredArchive.in(out);
  const read = vi.spyOn(StoredArchive.prototype, 'read');
  await check(out);
  const paths = new Set(read.mock.calls.map(([file]) => archivePath(file)));
  vi.restoreAllMocks();
  expect(paths).toEqual(describe(name, root).paths);
});
