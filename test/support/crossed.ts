/** In a run with tiny limits, fails a suite that did not cross each limit that CROSSED names for it. */
import { basename } from 'node:path';
import { afterAll, expect } from 'vitest';
import { crossings } from '../../src/limits.ts';
import { CROSSED } from './limits.ts';

afterAll(() => {
  const suite = basename(expect.getState().testPath ?? '', '.test.ts');
  const names = CROSSED[suite] ?? [];
  expect(names.length, `CROSSED in test/support/limits.ts has no limits of the suite ${suite}`).toBeGreaterThan(0);
  expect(names.filter((name) => !crossings.has(name))).toEqual([]);
});
