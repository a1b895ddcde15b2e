/** The lists of changes: what several writers listed becomes one list, whatever its length. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Changes, PathList } from '../src/write/changes.ts';
import { temporaryFolder } from './support/build.ts';

it('lists of more than is copied at once are joined in the order of their writers, byte for byte', () => {
  const cache = temporaryFolder();
  const changes = new Changes(cache);
  changes.begin();
  const paths: string[] = [];
  for (const writer of [0, 2, 10]) {
    const list = new PathList(changes.addedPart(writer));
    for (let i = 0; i < 50_000; i += 1) {
      const path = `runes/v1/blocks/${writer}/${i}.json`;
      list.add(path);
      paths.push(path);
    }
    list.flush();
    list.close();
  }
  const removed = changes.removedList();
  removed.flush();
  removed.close();
  changes.finish(join(cache, 'out'));
  const added = join(cache, 'changes/added.txt');
  expect(statSync(added).size).toBeGreaterThan(3 * 1024 * 1024);
  expect(readFileSync(added, 'utf8') === `${paths.join('\n')}\n`).toBe(true);
  expect(readdirSync(join(cache, 'changes')).sort()).toEqual(['added.txt', 'removed.txt']);
});
