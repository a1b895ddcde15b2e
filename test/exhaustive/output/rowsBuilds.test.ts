/** Tests incremental builds that publish rows. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tree, writeFiles } from '../../support/build.ts';
import { built, chain, published, random } from '../../support/builtRows.ts';
import { check } from '../../support/outputs.ts';
import { extended } from '../../support/runeChains.ts';

describe('an incremental build', () => {
  it('has the files of a full build while blocks are added, settle and are replaced', async () => {
    const { out, put, build, fresh } = await built({ layout: 'archive' });
    let blocks = chain;
    // In the second step, blocks of the first hundred become unsettled, and later settle again. The second hundred blocks settle for the
    // first time.
    for (const [depth, more] of [
      [3, 4],
      [20, 30],
      [0, 90],
    ] as const) {
      blocks = extended(blocks.slice(0, blocks.length - depth), more, random, 3);
      put(blocks);
      expect(await build()).toMatchObject({ notices: [] });
      expect(tree(out)).toEqual(await fresh());
    }
    await check(out);
  });

  it('becomes a full build, and says so, if a file that it needs is changed or missing', async () => {
    const { out, put, build, fresh } = await built();
    // Replaces the last block of the damaged file's hundred. The build would read the other rows of the hundred from this file.
    const after = extended(chain.slice(0, 99), 30, random, 3);
    let expected: Record<string, string> | undefined;
    for (const damage of [
      (path: string) => writeFileSync(path, readFileSync(path).fill(1, 30, 40)),
      (path: string) => {
        rmSync(path);
        mkdirSync(path);
      },
    ]) {
      put(chain);
      await build();
      damage(join(out, Object.keys(published(out)).find((one) => one.startsWith('rows/0-99-')) ?? ''));
      put(after);
      const { wasFull, notices } = await build();
      expect([wasFull, notices]).toEqual([
        true,
        [expect.stringMatching(/0-99-.* was changed since the last build; everything is built again/)],
      ]);
      expected ??= await fresh();
      expect(tree(out)).toEqual(expected);
    }
  });

  it('keeps foreign files in the folder', async () => {
    const { out, build } = await built();
    writeFiles(out, { 'rows/mine.txt': 'mine', 'rows/700-799-0123456789abcdef.parquet': 'left over' });
    await build({ full: true });
    expect(Object.keys(published(out)).filter((path) => /mine|\/700-/.test(path))).toEqual(['rows/mine.txt']);
    expect(await build({ parquet: false })).toMatchObject({ wasFull: true });
    expect(Object.keys(published(out))).toEqual(['rows/mine.txt']);
  });
});
