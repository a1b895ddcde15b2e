/** A mirror with rows, for tests to pull from. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { temporaryFolder, testBuild } from './build.ts';
import { writeChain } from './nodeRows.ts';
import { type PlainFiles, startPlainFiles } from './plainFiles.ts';
import { extended } from './runeChains.ts';
import { integersFor } from './seed.ts';

/** Height of the mirror's last block. Its blocks begin at height 0. */
export const TIP = 129;

export let host: PlainFiles;
/** Folder to pull to: a new one for each test. */
export let to: string;

/** Paths of the mirror's files of rows, heights ascending. */
export const rowsFiles = (): string[] =>
  readdirSync(join(host.folder, 'rows'))
    .filter((name) => /^[0-9].*[0-9a-f]{16}\.parquet$/.test(name))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((name) => `rows/${name}`);

/** Builds a mirror once for the calling file, and serves it to each of its tests. */
export function useMirror(): void {
  const work = temporaryFolder();
  beforeAll(async () => {
    writeChain(extended([], TIP + 1, integersFor('a mirror with rows'), 3), join(work, 'input'));
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'input')], parquet: true, operationPages: false });
  });
  beforeEach(async () => {
    host = await startPlainFiles(join(work, 'dist'));
    to = join(temporaryFolder(), 'input');
  });
  afterEach(() => host.close());
}
