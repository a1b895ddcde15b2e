/** Tests that a new file appears only when it is complete, and that hard links to the old file keep their content. */
import { execFileSync } from 'node:child_process';
import { linkSync, lstatSync, mkdirSync, readFileSync, symlinkSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isSameFile, replaceFile } from '../../src/disk/replaceFile.ts';
import { DiskSink } from '../../src/engine/render/diskSink.ts';
import { filesBelow, temporaryFolder } from '../support/build.ts';
import { mountDisk } from '../support/disk.ts';

const text = (path: string) => readFileSync(path, 'utf8');

describe('a file other than a page', () => {
  it('is complete as soon as it appears', async () => {
    const folder = temporaryFolder();
    const sink = new DiskSink(folder);
    const seen = new Map<string, Set<string>>();
    const watcher = watch(folder, (event, name) => seen.set(String(name), (seen.get(String(name)) ?? new Set()).add(event)));
    sink.file('a.json', Buffer.from('{}'));
    sink.page('b.json', '{"limit":1,"offset":0,"total":0,"results":[', Buffer.alloc(0));
    await expect.poll(() => seen.get('b.json')).toContain('change');
    watcher.close();
    expect([...(seen.get('a.json') ?? [])]).toEqual(['rename']);
    expect(filesBelow(folder)).toEqual(['a.json', 'b.json']);
  });
});

describe('a file', () => {
  it.each<[string, (path: string, other: string) => void]>([
    ['a file', (path) => writeFileSync(path, 'old')],
    ['a folder', (path) => mkdirSync(join(path, 'inner'), { recursive: true })],
    ['a link of another', (path, other) => linkSync(other, path)],
    ['a symbolic link', (path, other) => symlinkSync(other, path)],
    ['nothing', () => undefined],
  ])('replaces %s', (_, put) => {
    const folder = temporaryFolder();
    const [path, other] = [join(folder, 'a'), join(folder, 'other')];
    writeFileSync(other, 'other');
    put(path, other);
    // Makes a temporary file like one that a killed writer left behind. The next writer must not write into it.
    linkSync(other, `${path}.tmp`);
    replaceFile(path, (temporary) => writeFileSync(temporary, 'new'));
    expect([text(path), text(other), filesBelow(folder)]).toEqual(['new', 'other', ['a', 'other']]);
    expect(lstatSync(path).isFile()).toBe(true);
  });

  it('equals only a regular file with the same bytes', () => {
    const at = (name: string) => join(folder, name);
    const folder = temporaryFolder();
    for (const name of ['a', 'copy']) writeFileSync(at(name), 'x');
    writeFileSync(at('other'), 'y');
    linkSync(at('a'), at('link'));
    symlinkSync('a', at('symbolic'));
    const names = ['a', 'copy', 'link', 'other', 'symbolic', 'none', '.'];
    expect(names.filter((name) => isSameFile(at('a'), at(name)))).toEqual(['a', 'copy', 'link']);
  });
});

const root = temporaryFolder();
const mounted = mountDisk(join(root, 'disk'), '1m');

describe.skipIf(!mounted)('an output on two file systems (skipped where a tmpfs cannot be mounted)', () => {
  afterAll(() => {
    execFileSync('umount', [join(root, 'disk')]);
  });

  it('copies files where hard links are impossible, and replaces these copies too', () => {
    for (const content of ['first', 'second', 'second']) {
      const sink = new DiskSink(root);
      sink.file('a.json', Buffer.from(content));
      sink.link('disk/b.json', 'a.json');
      expect([text(join(root, 'disk/b.json')), filesBelow(join(root, 'disk'))]).toEqual([content, ['b.json']]);
    }
  });
});

it('the old file stays if there is no new one', () => {
  const target = join(temporaryFolder(), 'a.json');
  writeFileSync(target, 'old');
  expect(() => replaceFile(target, () => undefined)).toThrow('ENOENT');
  expect(readFileSync(target, 'utf8')).toBe('old');
});
