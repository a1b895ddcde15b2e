/** Makes builds of a random chain that publish rows (files below `rows/`). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RecordingLog, type TestBuild, temporaryFolder, testBuild, tree } from './build.ts';
import { indexWith, writeRows } from './nodeRows.ts';
import { extended, memoryOf } from './runeChains.ts';
import { integersFor } from './seed.ts';

export const random = integersFor('rows');

/** Returns the published files of rows. Maps paths to hashes. */
export const published = (out: string): Record<string, string> =>
  Object.fromEntries(Object.entries(tree(out)).filter(([path]) => path.startsWith('rows/')));

/** A chain of 108 blocks. Its rows are published in a file of a hundred settled blocks, and in files of single blocks. */
export const chain = extended([], 108, random, 3);

/** Writes files like those of a node, one for each block with rows, and builds them. */
export async function built(options: Omit<TestBuild, 'inputs'> = { layout: 'archive' }, blocks = chain) {
  const folder = temporaryFolder();
  const [out, input] = [join(folder, 'out'), join(folder, 'in')];
  const put = (blocks: typeof chain) => {
    writeRows(memoryOf(blocks), input);
    const tip = blocks.at(-1);
    const sources = [{ rules: 'ord', blocks: [[0, tip?.height]] }];
    writeFileSync(join(input, 'index.json'), indexWith({ sources, tip: { height: tip?.height, hash: tip?.hash }, network: 'regtest' }));
  };
  put(blocks);
  const build = async (more: Omit<TestBuild, 'inputs'> = {}) => {
    const log = new RecordingLog();
    return { ...(await testBuild(out, { inputs: [input], parquet: true, ...options, ...more, log })), notices: log.notices };
  };
  await build();
  const fresh = async () => {
    const other = join(temporaryFolder(), 'fresh');
    await testBuild(other, { inputs: [input], parquet: true, ...options });
    return tree(other);
  };
  return { folder, out, input, put, build, fresh };
}
