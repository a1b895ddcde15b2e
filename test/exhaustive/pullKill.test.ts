/**
 * Kills pulls over HTTP and from PostgreSQL at random moments. Afterwards, the files equal those of an uninterrupted
 * pull.
 */
import { once } from 'node:events';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { filesBelow, temporaryFolder, tree } from '../support/build.ts';
import { start } from '../support/cli.ts';
import { fillChain, SCHEMA, startPostgres } from '../support/postgres.ts';
import { testPull } from '../support/pull.ts';
import { base, server, shortChain, to, useServer } from '../support/recordedServer.ts';
import { randomFor } from '../support/seed.ts';

/** Number of kills of each pull. */
const KILLS = Number(env['KILLS'] ?? 6);

useServer();

it(`a pull over HTTP is killed ${KILLS} times`, async () => {
  shortChain(1300);
  const whole = join(temporaryFolder(), 'input');
  await testPull(base, whole, { wanted: { from: 1001, to: undefined } });
  const random = randomFor('kills of pulls over HTTP');
  let killed = 0;
  while (killed < KILLS) {
    const child = start('pull', ['--from', base, '--to', to, '--rate', '0', '--blocks', '1001..'], '/');
    const after = server.requests.length + Math.floor(random() * 18);
    server.answered = () => {
      if (server.requests.length >= after) child.kill('SIGKILL');
    };
    const [code] = await once(child, 'exit');
    server.answered = () => undefined;
    if (code === 0) break;
    killed += 1;
  }
  expect(killed).toBe(KILLS);
  await testPull(base, to, { wanted: { from: 1001, to: undefined } });
  expect(tree(to)).toEqual(tree(whole));
});

it('a pull over HTTP is killed while it joins files', async () => {
  shortChain(1300);
  const wanted = { from: 1001, to: undefined };
  const [apart, whole] = [join(temporaryFolder(), 'input'), join(temporaryFolder(), 'input')];
  await testPull(base, apart, { wanted, confirmations: 1000 });
  await testPull(base, whole, { wanted });
  const random = randomFor('kills of pulls that join files');
  for (let killed = 0; killed < 3; killed += 1) {
    rmSync(to, { recursive: true, force: true });
    cpSync(apart, to, { recursive: true });
    const child = start('pull', ['--from', base, '--to', to, '--rate', '0'], '/');
    const ended = once(child, 'exit');
    const isJoining = () => filesBelow(join(to, 'pulled')).some((path) => /^\.work\/.*\.gz$|\/1001-1099-/.test(path));
    while (child.exitCode === null && !isJoining()) await sleep(1);
    await sleep(Math.floor(random() * 4));
    child.kill('SIGKILL');
    await ended;
    server.requests.length = 0;
    await testPull(base, to);
    expect(server.requests.filter((target) => /blocks.*limit=60$/.test(target))).toEqual([]);
    expect(tree(to)).toEqual(tree(whole));
  }
});

it(`a pull from PostgreSQL is killed ${KILLS} times`, async () => {
  const database = await startPostgres();
  try {
    await database.sql.query(SCHEMA);
    await fillChain(database.sql, 1000, 1450);
    const whole = join(temporaryFolder(), 'input');
    await testPull(database.url, whole);
    const random = randomFor('kills of pulls from PostgreSQL');
    for (let killed = 0; killed < KILLS; killed += 1) {
      const child = start('pull', ['--from', database.url, '--to', to, '--concurrency', '2'], '/');
      const ended = once(child, 'exit');
      const connected = `SELECT pid FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror'`;
      while (child.exitCode === null && (await database.sql.query(connected)).rows.length === 0) await sleep(10);
      // Starts counting at the first connection, because most of the running time lies between it and the end.
      await Promise.race([ended, sleep(Math.floor(random() * 400))]);
      child.kill('SIGKILL');
      await ended;
      // Waits until PostgreSQL has ended the connections of the killed pull.
      while ((await database.sql.query(connected)).rows.length > 0) await sleep(10);
    }
    await testPull(database.url, to);
    expect(tree(to)).toEqual(tree(whole));
  } finally {
    await database.close();
  }
});
