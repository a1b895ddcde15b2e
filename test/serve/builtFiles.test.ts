/** Tests how the local server sends files of a build. An answer has one version of the file, even if the file changes meanwhile. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readlinkSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { attempt } from '../../src/attempt.ts';
import { SERVER_LIMITS } from '../../src/limits.ts';
import { isUnread } from '../../src/serve/http/handler.ts';
import { BuiltFiles, ForeignFileError } from '../../src/serve/local/builtFiles.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { startServer } from '../support/server.ts';

/** A clock that makes all files old enough for the cache. */
const LATER = () => Date.now() + 1000;

describe('files in memory', () => {
  it('are dropped if the cache is full, except files that were read twice at the same time', async () => {
    const dir = temporaryFolder();
    const paths = Array.from({ length: 400 }, (_, i) => `${i}.json`);
    for (const path of paths) writeFileSync(join(dir, path), Buffer.alloc(200_000, path));
    const files = new BuiltFiles(dir, SERVER_LIMITS, LATER);
    const held = new Map<string, unknown>();
    for (const path of paths) {
      await Promise.all([files.open(path), files.open(path)]);
      held.set(path, await files.open(path));
    }
    const [first, last] = ['0.json', '399.json'];
    expect(await files.open(last)).toBe(held.get(last));
    const again = await files.open(first);
    expect(again).not.toBe(held.get(first));
    expect(await files.open(first)).toBe(again);
  });

  it('are read again if they were replaced, also by files of the same size', async () => {
    const dir = temporaryFolder();
    writeFileSync(join(dir, 'a.json'), 'old');
    const files = new BuiltFiles(dir, SERVER_LIMITS, LATER);
    const old = await files.open('a.json');
    expect(await files.open('a.json')).toBe(old);
    writeFileSync(join(dir, 'b.json'), 'new');
    renameSync(join(dir, 'b.json'), join(dir, 'a.json'));
    expect((await files.open('a.json'))?.bytes?.body.toString()).toBe('new');
  });

  it('stay only if their last change is so old that another one would have another time', async () => {
    const dir = temporaryFolder();
    writeFileSync(join(dir, 'a.json'), 'a');
    const { mtimeMs, ctimeMs } = statSync(join(dir, 'a.json'));
    let now = Math.max(mtimeMs, ctimeMs) + 100;
    const files = new BuiltFiles(dir, SERVER_LIMITS, () => now);
    const first = await files.open('a.json');
    now += 1;
    const second = await files.open('a.json');
    expect(second).not.toBe(first);
    expect(await files.open('a.json')).toBe(second);
  });

  it('are missing if they are broken links', async () => {
    const dir = temporaryFolder();
    symlinkSync(join(dir, 'nothing.json'), join(dir, 'a.json'));
    mkdirSync(join(dir, 'b'));
    symlinkSync(join(dir, 'nothing'), join(dir, 'b/c'));
    const files = new BuiltFiles(dir);
    expect(await files.open('a.json')).toBeUndefined();
    expect(await files.open('b/c/d.json')).toBeUndefined();
    symlinkSync(join(dir, 'round.json'), join(dir, 'round.json'));
    await expect(files.open('round.json')).rejects.toThrow(ForeignFileError);
  });
});

describe('a large file', () => {
  const dist = join(temporaryFolder(), 'dist');
  const large = join(dist, 'openapi.json');
  const content = (size: number, letter: string) => `["${letter.repeat(size)}"]`;
  beforeAll(() => testBuild(dist, { inputs: [SAMPLE_INPUT] }));

  it('that is replaced all the time is answered in one version, with the right ETag and length', async () => {
    const versions = [content(400_000, 'a'), content(400_000, 'b'), content(300_000, 'c')];
    const etags = new Map(versions.map((text) => [text, `"${createHash('sha256').update(text).digest('hex').slice(0, 32)}"`]));
    writeFileSync(large, versions[0] ?? '');
    const server = await startServer(dist);
    let isDone = false;
    const replacing = (async () => {
      for (let i = 0; !isDone; i += 1) {
        writeFileSync(join(dist, 'next'), versions[i % versions.length] ?? '');
        renameSync(join(dist, 'next'), large);
        await turn();
      }
    })();
    const seen = new Set<string>();
    try {
      for (let i = 0; i < 150; i += 1) {
        const { status, headers, body } = await server.send('GET', '/openapi.json', i % 2 === 0 ? {} : { 'accept-encoding': 'gzip' });
        seen.add(body[2] ?? '');
        expect([status, headers.etag?.replace('-gz', '')]).toEqual([200, etags.get(body)]);
      }
    } finally {
      isDone = true;
      await replacing;
      await server.close();
    }
    expect([...seen].sort()).toEqual(['a', 'b', 'c']);
  });

  it('of an archive has its name as ETag, and is not read to compute it', async () => {
    const dir = temporaryFolder();
    const name = '0123456789abcdef'.repeat(4);
    mkdirSync(join(dir, 'archive'));
    // Neither name is the hash of the content, so the ETag shows whether it was made from the name or from the content.
    for (const path of [`archive/${name}.bin`, `${name}.bin`]) writeFileSync(join(dir, path), Buffer.alloc(300_000));
    const etagOf = async (path: string) => {
      const content = await (await new BuiltFiles(dir).open(path))?.open(true);
      if (content !== undefined && isUnread(content.body)) content.body.close();
      return content?.etag;
    };
    expect(await etagOf(`archive/${name}.bin`)).toBe(`"${name.slice(0, 32)}"`);
    expect(await etagOf(`${name}.bin`)).not.toBe(`"${name.slice(0, 32)}"`);
  });
});

describe.skipIf(!existsSync('/proc/self/fd'))('a file of an archive', () => {
  const folder = temporaryFolder();
  const opened = () => readdirSync('/proc/self/fd').map((file) => attempt(() => readlinkSync(`/proc/self/fd/${file}`)));
  const isOpen = (name: string) => opened().includes(join(folder, name));
  beforeAll(() => writeFiles(folder, { a: 'a', b: 'b' }));

  it('stays open until another one takes its place', async () => {
    const files = new BuiltFiles(folder, { ...SERVER_LIMITS, openFiles: 1 });
    const read = (name: string) => files.read(name, 0, 1).then(String);
    expect(await Promise.all([read('a'), read('a'), read('a')])).toEqual(['a', 'a', 'a']);
    expect([isOpen('a'), isOpen('b')]).toEqual([true, false]);
    expect(await read('b')).toBe('b');
    expect([isOpen('a'), isOpen('b')]).toEqual([false, true]);
    files.close();
    expect(isOpen('b')).toBe(false);
  });
});
