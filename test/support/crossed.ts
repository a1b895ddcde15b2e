/**
 * Setup of suites that must exceed limits: sets tiny limits of readers and servers, if CROSSED (limits.ts) lists these limits for the
 * suite. A suite fails unless it exceeds every limit that CROSSED lists for it.
 */
import { basename } from 'node:path';
import { afterAll, expect } from 'vitest';
import { crossings, READER_LIMITS, SERVER_LIMITS } from '../../src/limits.ts';
import { CROSSED, TINY_READER, TINY_SERVER } from './limits.ts';

const suiteOf = () => basename(expect.getState().testPath ?? '', '.test.ts');

// Must run before the suite is loaded, because modules of the server copy these limits.
if (CROSSED[suiteOf()]?.includes('readWhole') === true) {
  Object.assign(READER_LIMITS, TINY_READER);
  Object.assign(SERVER_LIMITS, TINY_SERVER);
}

afterAll(() => {
  const suite = suiteOf();
  const names = CROSSED[suite] ?? [];
  expect(names.length, `CROSSED in test/support/limits.ts has no limits of the suite ${suite}`).toBeGreaterThan(0);
  expect(names.filter((name) => !crossings.has(name))).toEqual([]);
});
