/** Pulls that are killed, and pulls on a full disk. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { temporaryFolder, tree } from '../support/build.ts';
import { start } from '../support/cli.ts';
import { mountDisk } from '../support/disk.ts';
import { type Database, insertChain, SCHEMA, startPostgres } from '../support/postgres.ts';
import { failedPull, testPull } from '../support/pull.ts';
import { base, builtDigest, digest, server, to, useRecordedServer } from '../support/recordedServer.ts';
import { randomFor } from '../support/seed.ts';

useRecordedServer();

describe('npm run pull', () => {
  const flags = () => ['--from', base, '--to', to, '--rate', '0'];
  const work = temporaryFolder();

  it('is killed 20 times at random moments, and the files are those of one that was not', async () => {
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole);
    const random = randomFor('kills of pulls');
    let killed = 0;
    while (killed < 20) {
      const child = start('pull', flags(), work);
      // The start takes some 0.5 s, all of the work about as long.
      const after = server.requests.length + Math.floor(random() * 12);
      server.answered = () => {
        if (server.requests.length >= after) child.kill('SIGKILL');
      };
      const [code] = await once(child, 'exit');
      server.answered = () => undefined;
      if (code === 0) break;
      killed += 1;
    }
    expect(killed).toBe(20);
    await testPull(base, to);
    expect(tree(to)).toEqual(tree(whole));
    expect(await builtDigest()).toBe(digest);
  });

  it('on a full disk says so, and goes on when there is room', async (context) => {
    const disk = join(temporaryFolder(), 'disk');
    if (!mountDisk(disk, '1m')) return context.skip('only root can make a small disk');
    try {
      const input = join(disk, 'input');
      writeFileSync(join(disk, 'filler'), Buffer.alloc(600_000));
      const error = await failedPull(base, input);
      expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/^the disk of .* is full$/)]);
      rmSync(join(disk, 'filler'));
      await testPull(base, input);
      expect(await builtDigest(input)).toBe(digest);
    } finally {
      execFileSync('umount', [disk]);
    }
  });
});

describe('a pull from PostgreSQL', () => {
  let database: Database | undefined;
  afterAll(() => database?.close());

  it('is killed 20 times at random moments, and the files are those of one that was not', async () => {
    database = await startPostgres();
    await database.sql.query(SCHEMA);
    await insertChain(database.sql, 1000, 1450);
    const whole = join(temporaryFolder(), 'input');
    await testPull(database.url, whole);
    const random = randomFor('kills of pulls from PostgreSQL');
    for (let killed = 0; killed < 20; killed += 1) {
      const child = start('pull', ['--from', database.url, '--to', to, '--concurrency', '2'], '/');
      // Most of the time from the first connection until the end.
      const timer = setTimeout(() => child.kill('SIGKILL'), 500 + random() * 500);
      await once(child, 'exit');
      clearTimeout(timer);
    }
    await testPull(database.url, to);
    expect(tree(to)).toEqual(tree(whole));
  });
});
