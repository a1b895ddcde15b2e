/** Tests the status of a mirror. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STATUS_PATH } from '../../src/pages/filePaths.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { indexWith, writeRows } from '../support/nodeRows.ts';
import { grown } from '../support/outputStates.ts';
import { memoryOf } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';

it('says when the highest block was mined, and null if no record says it', async () => {
  const memory = memoryOf(grown([], 20, integersFor('status')));
  const { block_height: last = 0, block_hash: hash, timestamp } = memory.rows.at(-1) ?? {};
  const [input, out] = [temporaryFolder(), join(temporaryFolder(), 'out')];
  writeRows(memory, input);
  // The tip rises to a block without records, and falls again.
  for (const above of [0, 2, 0]) {
    const tip = { height: last + above, hash: above === 0 ? hash : 'ab'.repeat(32) };
    const sources = [{ rules: 'ord', blocks: [[0, tip.height]] }];
    writeFileSync(join(input, 'index.json'), indexWith({ sources, tip, network: 'regtest' }));
    await testBuild(out, { inputs: [input] });
    const status: unknown = JSON.parse(readFileSync(join(out, STATUS_PATH), 'utf8'));
    const block_time = above === 0 ? timestamp : null;
    expect(status).toEqual({ server_version: expect.any(String), status: 'ready', block_height: tip.height, block_time });
  }
});
