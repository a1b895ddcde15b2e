/** Tests files of changes of single blocks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { ndjson, record } from '../support/records.ts';

it('the file of a block names the block below it by its new hash, if only this hash has changed', async () => {
  const [input, out] = [join(temporaryFolder(), 'in'), join(temporaryFolder(), 'out')];
  const write = (hash: string) =>
    writeFiles(input, {
      'a.ndjson': ndjson([record(4, 1, { location: { block_hash: `0x${hash.repeat(64)}` } }), record(5, 1)]),
    });
  for (const hash of ['1', '2']) {
    write(hash);
    await testBuild(out, { inputs: [input] });
    const { previous } = JSON.parse(readFileSync(join(out, 'runes/v1/changes/5.json'), 'utf8')) as { previous: object };
    expect(previous).toEqual({ height: 4, hash: `0x${hash.repeat(64)}` });
  }
});
