/** Tests lists of changes. The lists of several writers become one list, no matter how long they are. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { APPEND, LineFile } from '../../src/disk/lineFile.ts';
import { Changes } from '../../src/output/uploadLists.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { ndjson, record } from '../support/records.ts';

it('long lists of several writers are joined in the order of the writers, byte for byte', async () => {
  const cache = temporaryFolder();
  const changes = new Changes(cache);
  changes.begin(false);
  const paths: string[] = [];
  for (const writer of [0, 2, 10]) {
    const list = new LineFile(changes.addedPart(writer), APPEND);
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
  await changes.finish(join(cache, 'out'));
  const added = join(cache, 'changes/added.txt');
  expect(statSync(added).size).toBeGreaterThan(3 * 1024 * 1024);
  expect(readFileSync(added, 'utf8') === `${paths.join('\n')}\n`).toBe(true);
  expect(readdirSync(join(cache, 'changes')).sort()).toEqual(['added.txt', 'removed.txt']);
});

it('a path is written completely if the buffer has no space for its line feed', () => {
  const file = join(temporaryFolder(), 'list');
  const list = new LineFile(file, APPEND);
  const paths = ['a'.repeat(2 ** 15 - 1), 'b'.repeat(2 ** 15), 'c'];
  for (const path of paths) list.add(path);
  list.flush();
  list.close();
  expect(readFileSync(file, 'utf8') === `${paths.join('\n')}\n`).toBe(true);
});

it('the next build lists removed files again, if the last one died after it named its lists', async () => {
  const work = temporaryFolder();
  const [out, input] = [join(work, 'out'), join(work, 'in')];
  writeFiles(input, { '1.ndjson': ndjson([record(1, 1)]), '2.ndjson': ndjson([record(2, 1)]) });
  await testBuild(out, { inputs: [input] });
  rmSync(join(input, '2.ndjson'));
  await testBuild(out, { inputs: [input] });
  const list = () => readFileSync(`${out}.cache/changes/removed.txt`, 'latin1').split('\n');
  expect(list()).toContain('runes/v1/blocks/2.json');
  writeFileSync(join(out, '.rune-activity-mirror'), 'A build is running here, or it did not finish.\n');
  await testBuild(out, { inputs: [input] });
  expect(list()).toContain('runes/v1/blocks/2.json');
  await testBuild(out, { inputs: [input], full: true });
  expect(list()).toContain('runes/v1/blocks/2.json');
});

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
