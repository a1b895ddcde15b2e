/** Runs a short rehearsal of mainnet, with limits that its chain often crosses (test/rehearsal). */
import { expect, it } from 'vitest';
import { rehearse } from '../../rehearsal/rehearsal.ts';
import { RecordingLog, temporaryFolder } from '../../support/build.ts';
import { TINY } from '../../support/limits.ts';
import { randomFor } from '../../support/seed.ts';

it('a pull, builds, reorganisations and kills with tiny limits give the results of an independent model', async () => {
  const seed = Math.floor(randomFor('a rehearsal')() * 2 ** 31);
  // The chain has thousands of rows: with fewer at once, its parts would take minutes.
  const limits = { ...TINY, servedAtOnce: 50, listedAtOnce: 50, sortedAtOnce: 250, linesPerLoad: 100, batchRecords: 25 };
  // With so many blocks, every level has blocks, because the tiny limits have small levels.
  const options = { blocks: 236, rows: 12, heights: 2, follow: 2, requests: 300, seed, folder: temporaryFolder(), limits };
  const { differences, crossed } = await rehearse(options, new RecordingLog());
  expect([differences.count, differences.first]).toEqual([0, []]);
  expect(differences.compared).toBeGreaterThan(5000);
  // Limits that need not be crossed. A pull from a node writes no text files, so `filesPerScan` does not apply. `runesMember` and
  // `lookUpMember` are counted as `documentMember`.
  const others = ['filesPerScan', 'runesMember', 'lookUpMember'];
  expect(Object.keys(TINY).filter((name) => !others.includes(name) && !crossed.has(name))).toEqual([]);
});
