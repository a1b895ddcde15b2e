/**
 * Kills pulls from a node, in processes of their own, after a random number of calls to the node, and in reorganisations. Afterwards, the
 * files equal those of an uninterrupted pull. exhaustive/disk/crashes.test.ts tries the same without processes at every write.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { env } from 'node:process';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../support/build.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { testPull } from '../../support/pull.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

/** Number of killed pulls, half of them in reorganisations. */
const KILLS = Number(env['KILLS'] ?? 4);
const confirmations = 12;
const PULL = new URL('../../support/pullProcess.ts', import.meta.url).pathname;

it(`a pull from a node is killed ${KILLS} times`, async () => {
  const random = integersFor('kills of pulls from a node');
  let chain = extended([], 220, random);
  const node = await FakeNode.start(chain, { network: 'regtest' });
  const from = `core:${node.url}`;
  const [to, fresh] = [temporaryFolder(), temporaryFolder()];
  const kill = async (most: number) => {
    const child = spawn(process.execPath, ['--import', 'tsx', PULL, from, to, String(confirmations)], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    let calls = 1 + random(most);
    node.onCall = () => {
      calls -= 1;
      if (calls <= 0) child.kill('SIGKILL');
    };
    await ended;
    node.onCall = undefined;
  };
  try {
    for (let killed = 0; killed < KILLS / 2; killed++) await kill(500);
    await testPull(from, to, { confirmations });
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    for (let killed = 0; killed < KILLS / 2; killed++) {
      // A branch is at least as long as the blocks that it replaces. So no branch forks deeper than the pull's option `confirmations`
      // allows.
      const depth = 1 + random(confirmations);
      chain = extended(chain.slice(0, chain.length - depth), depth + random(20), random);
      node.replace(chain);
      await kill(60);
      await testPull(from, to, { confirmations });
    }
    await testPull(from, fresh, { confirmations });
    expect(pulledTree(to)).toEqual(pulledTree(fresh));
  } finally {
    await node.close();
  }
});
