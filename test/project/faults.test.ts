/** Checks the list of faults that `npm run faults` puts into the program, one after another. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { attempt } from '../../src/attempt.ts';
import { groupBy } from '../../src/groupBy.ts';
import { changed, FAULTS, ROOMS, roomOf } from '../faults/list.ts';
import { ROOT } from '../support/cli.ts';

it('each fault can be put into the program, and the test that must notice it exists', () => {
  expect(FAULTS.filter((fault) => attempt(() => changed(fault)) === undefined)).toEqual([]);
  expect(FAULTS.filter(({ test }) => !existsSync(join(ROOT, `test/${test}.test.ts`)))).toEqual([]);
  expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
});

it('each room of the program has enough faults', () => {
  const faults = groupBy(FAULTS, ({ file }) => roomOf(file));
  expect([...faults.keys()].filter((room) => !(room in ROOMS))).toEqual([]);
  expect(Object.entries(ROOMS).filter(([room, least]) => (faults.get(room)?.length ?? 0) < least)).toEqual([]);
  expect(FAULTS.length).toBeGreaterThanOrEqual(120);
  const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.filter(({ name }) => !(roomOf(`src/${name}/`) in ROOMS))).toEqual([]);
});
