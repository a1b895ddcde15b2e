/** Tests pulls of published rows from a mirror with random histories. */
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { testPull } from '../../support/pull.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';

const STEPS = Number(env['FC_RUNS'] ?? 2);
const work = temporaryFolder();
const options = { parquet: true, layout: 'archive', lists: true } as const;
let host: PlainFiles;
beforeAll(async () => {
  host = await startPlainFiles(join(work, 'dist'));
});
afterAll(() => host.close());

async function mirror(chain: Parameters<typeof memoryOf>[0]): Promise<void> {
  const node = await FakeNode.start(chain, { network: 'regtest' });
  await testPull(`core:${node.url}`, join(work, 'node'), { confirmations: 100 });
  await node.close();
  await testBuild(join(work, 'dist'), { inputs: [join(work, 'node')], ...options });
}

it(`follows a donor through ${STEPS} steps of a random history, with builds of the same bytes`, async () => {
  const next = randomFor('histories of a donor of rows');
  const random = (below: number) => Math.floor(next() * below);
  const [to, out] = [join(work, 'input'), join(work, 'again')];
  let chain = extended([], 150 + random(100), random, 3);
  for (let step = 0; step < STEPS; step += 1) {
    const depth = random(3) === 0 ? 0 : random(40);
    chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(random(2) === 0 ? 3 : 120), random, 3);
    await mirror(chain);
    await testPull(host.base, to, { confirmations: 60 });
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    await testBuild(out, { inputs: [to], ...options });
    expect(tree(out)).toEqual(tree(join(work, 'dist')));
  }
  await check(out);
  const fresh = temporaryFolder();
  await testPull(host.base, fresh, { confirmations: 60 });
  expect(pulledTree(to)).toEqual(pulledTree(fresh));
}, 600_000);
