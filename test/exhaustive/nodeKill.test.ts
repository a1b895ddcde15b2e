/**
 * Kills pulls from a node at random moments, even in reorganisations. Afterwards, the files equal those of an
 * uninterrupted pull.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/build.ts';
import { FakeNode } from '../support/fakeNode.ts';
import { memoryRows, pulledRows, pulledTree } from '../support/nodePulls.ts';
import { testPull } from '../support/pull.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

/** Number of killed pulls on each chain. */
const KILLS = Number(env['KILLS'] ?? 6);
const CONFIRMATIONS = 12;
const PULL = new URL('../support/pullProcess.ts', import.meta.url).pathname;

it(`a pull from a node is killed ${KILLS} times, then ${KILLS} times in reorganisations`, async () => {
  const next = randomFor('kills of pulls from a node');
  const random = (below: number) => Math.floor(next() * below);
  const node = await FakeNode.start([], { network: 'regtest' });
  const to = temporaryFolder();
  const from = `core:${node.url}`;
  try {
    let chain = extended([], 220, random);
    node.replace(chain);
    const kill = async () => {
      const child = spawn(process.execPath, ['--import', 'tsx', PULL, from, to, String(CONFIRMATIONS)], { stdio: 'ignore' });
      const ended = once(child, 'exit');
      const called = new Promise<void>((resolve) => {
        node.onCall = resolve;
      });
      expect(await Promise.race([ended.then(() => 'ended'), called.then(() => 'called')])).toBe('called');
      await Promise.race([ended, sleep(random(900))]);
      child.kill('SIGKILL');
      await ended;
    };
    for (let killed = 0; killed < KILLS; killed++) await kill();
    await testPull(from, to, { confirmations: CONFIRMATIONS });
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    for (let killed = 0; killed < KILLS; killed++) {
      // A branch is at least as long as the blocks that it replaces. So no branch forks deeper than the pull's option
      // `confirmations` allows.
      const depth = 1 + random(CONFIRMATIONS);
      chain = extended(chain.slice(0, chain.length - depth), depth + random(20), random);
      node.replace(chain);
      await kill();
      // After the kill, the pull may have blocks of the old branch. They are not deeper than `confirmations` allows, so
      // the next pull can replace them.
      await testPull(from, to, { confirmations: CONFIRMATIONS });
    }
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    const fresh = temporaryFolder();
    await testPull(from, fresh, { confirmations: CONFIRMATIONS });
    expect(pulledTree(to)).toEqual(pulledTree(fresh));
  } finally {
    await node.close();
  }
});
