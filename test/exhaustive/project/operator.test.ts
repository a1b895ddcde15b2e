/** Follows the steps for operators in README.md and docs/run-a-mirror.md, with each kind of source. */
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { to as copyTo } from 'pg-copy-streams';
import { expect, it } from 'vitest';
import { manifest } from '../../../src/contract/schemas.ts';
import { CONFORMANCE, CONFORMANCE_INPUTS, temporaryFolder, testBuild } from '../../support/build.ts';
import { run, runProcess } from '../../support/cli.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { writeChain } from '../../support/nodeRows.ts';
import { blockBelow, codeBlocksOf, readPage } from '../../support/pages.ts';
import { copyIn, SCHEMA, startPostgres } from '../../support/postgres.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { startServer } from '../../support/server.ts';

/** Returns the npm scripts that a shell block calls, with their arguments. */
const callsIn = (text: string) =>
  [...text.matchAll(/npm run (\w+)(?: -- ([^#&\n]*))?/g)].map(([, script = '', args = '']) => [
    script,
    ...args.trim().split(/ +/).filter(Boolean),
  ]);

const next = integersFor('operator');

/** Functions that start each kind of source. Each returns the address that the documents use, and a function that stops the source. */
const SOURCES = {
  'core:http://127.0.0.1:8332': async () => {
    const node = await FakeNode.start(extended([], 20, next), { network: 'regtest' });
    return { url: `core:${node.url}`, close: () => node.close() };
  },
  'https://host': async () => {
    const work = temporaryFolder();
    const dist = join(work, 'dist');
    writeChain(extended([], 20, next), join(work, 'input'));
    await testBuild(dist, { inputs: [join(work, 'input')], parquet: true });
    const host = await startServer(dist);
    return { url: `http://127.0.0.1:${host.port}`, close: () => host.close() };
  },
} as const;

it.each(Object.entries(SOURCES))('README.md: a mirror from %s', async (address, start) => {
  const calls = codeBlocksOf('README.md').flatMap(({ label, text }) => (label === 'sh' ? callsIn(text) : []));
  const pull = calls.find(([script, ...args]) => script === 'pull' && args.includes(address)) ?? [];
  const builds = calls.filter(([script, ...args]) => script === 'build' && args.includes('input/pulled'));
  expect([pull.length > 2, builds.length, calls.some(([script]) => script === 'verify')]).toEqual([true, 1, true]);
  const [work, source] = [temporaryFolder(), await start()];
  try {
    for (const [script = '', ...args] of [pull, ...builds, ['verify']]) {
      const given = args.map((arg) => arg.replace(address, source.url));
      expect(await runProcess(script, given, work)).toMatchObject({ code: 0, stderr: '' });
    }
  } finally {
    await source.close();
  }
  const made = manifest.parse(JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')));
  expect(made).toMatchObject({ dialect: 'hiro' });
  expect([made.records > 0, made.sample]).toEqual([true, undefined]);
});

it('docs/input.md: the tables of a database, copied as psql does', async () => {
  const database = await startPostgres();
  const work = temporaryFolder();
  mkdirSync(join(work, 'input'));
  try {
    await database.sql.query(SCHEMA);
    for (const table of ['runes', 'ledger']) await copyIn(database.sql, table, readFileSync(join(CONFORMANCE, `${table}.csv`)));
    const copies = [...readPage('docs/input.md').matchAll(/^\\copy (\w+) to '([^']+)' csv header$/gm)];
    expect(copies).toHaveLength(2);
    for (const [, table = '', file = ''] of copies) {
      const rows = database.sql.query(copyTo(`COPY ${table} TO STDOUT (FORMAT csv, HEADER true)`));
      await pipeline(rows, createWriteStream(join(work, file)));
    }
  } finally {
    await database.close();
  }
  const { manifest: made } = await testBuild(join(work, 'dist'), { inputs: [join(work, 'input')] });
  const { manifest: known } = await testBuild(join(work, 'known'), { inputs: CONFORMANCE_INPUTS });
  expect(made).toEqual(known);
});

it('docs/run-a-mirror.md: a window of another mirror', async () => {
  const [work, source] = [temporaryFolder(), await SOURCES['https://host']()];
  const calls = callsIn(blockBelow('docs/run-a-mirror.md', 'Data in minutes, without a node', 'sh'));
  expect(calls.map(([script]) => script)).toEqual(['pull', 'build', 'verify']);
  try {
    for (const [script = '', ...args] of calls) {
      const given = args.map((arg) => arg.replace('https://host', source.url));
      expect(await run(script, given, work)).toMatchObject({ code: 0, stderr: '' });
    }
  } finally {
    await source.close();
  }
});
