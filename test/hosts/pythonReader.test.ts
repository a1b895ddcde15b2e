/** Tests docs/read_archive.py, a reader of layout `archive` in another language. It must print the same records as `npm start` returns. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { blockBelow } from '../support/pages.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const run = promisify(execFile);
let host: LocalHost;

beforeAll(async () => {
  if (spawnSync('python3', ['--version']).error !== undefined) throw new Error('python3 is not installed, and this test needs it');
  const out = join(temporaryFolder(), 'out');
  // A file has only two parts of 4,096 bytes, so that tables and blocks have several files.
  await testBuild(out, { inputs: [SAMPLE_INPUT], layout: 'archive', objectSize: 8192 });
  host = await startServer(out);
});
afterAll(() => host.close());

/** Returns the records that the Python program prints. */
async function recordsOf(kind: string, id: string | number): Promise<unknown[]> {
  const { stdout } = await run('python3', [join(ROOT, 'docs/read_archive.py'), `http://127.0.0.1:${host.port}`, kind, String(id)]);
  return JSON.parse(stdout) as unknown[];
}

/** Returns the same records from the API. */
async function expectedOf(list: string): Promise<{ location: { tx_id: string } }[]> {
  const records: { location: { tx_id: string } }[] = [];
  for (let total = 1; records.length < total; ) {
    const { body } = await host.send('GET', `/runes/v1/${list}/activity?limit=60&offset=${records.length}`);
    const page = JSON.parse(body) as { total: number; results: typeof records };
    total = page.total;
    records.push(...page.results);
  }
  return records;
}

it('reads every record of a block', async () => {
  for (const height of [840000, 2000007]) expect(await recordsOf('block', height)).toEqual(await expectedOf(`blocks/${height}`));
  expect(await recordsOf('block', 5)).toEqual([]);
});

it('finds transactions', async () => {
  const ids = new Set((await expectedOf('blocks/2000007')).map(({ location }) => location.tx_id));
  expect(ids.size).toBeGreaterThan(3);
  for (const id of [...ids].slice(0, 4))
    expect(await recordsOf('transaction', id.slice(2))).toEqual(await expectedOf(`transactions/${id}`));
  expect(await recordsOf('transaction', '9'.repeat(64))).toEqual([]);
});

it('prints the names of all runes with the program in docs/files.md', async () => {
  const program = blockBelow('docs/files.md', 'Names of all runes', 'python');
  const { stdout } = await run('python3', ['-c', program, `http://127.0.0.1:${host.port}`]);
  const { body } = await host.send('GET', '/runes/v1/etchings?limit=60');
  const { results } = JSON.parse(body) as {
    results: { id: string; number: number; spaced_name: string; divisibility: number; symbol: string }[];
  };
  const expected = results.map((rune) => JSON.stringify([rune.id, rune.number, rune.spaced_name, rune.divisibility, rune.symbol]));
  expect(stdout.trimEnd().split('\n')).toEqual(expected.reverse());
  expect(expected.length).toBeGreaterThan(3);
});
