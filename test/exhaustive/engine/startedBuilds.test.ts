/**
 * Tests builds from pulls that start from the ledger of a mirror. startBuild.test.ts has more starts, chains and
 * requests.
 */
import { cpSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sealFile } from '../../../src/contract/archiveFile.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../../src/engine/render/compress.ts';
import type { CliError } from '../../../src/errors.ts';
import { renderRoot } from '../../../src/format/root.ts';
import { compareMirrors, readOther } from '../../../src/verify/compareMirrors.ts';
import { failedBuild, RecordingLog, temporaryFolder, tree } from '../../support/build.ts';
import { chainOf } from '../../support/fakeNode.ts';
import { check } from '../../support/outputs.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { expectSame, pointsOf } from '../../support/startedMirrors.ts';
import { StartedPulls } from '../../support/startedPulls.ts';

const random = integersFor('start builds');
const LENGTH = 70;
const CHAIN = extended([], LENGTH + 40, random, 6);

let pulls: StartedPulls;
/** Folder of a pull that starts from a mirror. `start` is the height and digest of that ledger. */
const to = temporaryFolder();
let start: { height: number; digest: string };
beforeAll(async () => {
  pulls = await StartedPulls.begin(CHAIN.slice(0, LENGTH));
  start = await pulls.start(to, 62);
});
afterAll(() => pulls.node.close());

const startOf = (out: string) => StoredArchive.find(out)?.root.lists?.start;

it('has the same lists as a mirror with all history, through new blocks and a reorganisation', async () => {
  const out = join(temporaryFolder(), 'dist');
  const fork = extended(CHAIN.slice(0, LENGTH - 2), 30, random, 6);
  for (const chain of [CHAIN.slice(0, LENGTH), fork]) {
    pulls.node.replace(chain);
    await pulls.pull(to);
    const expected = await pulls.follow();
    const { manifest } = await pulls.build(out, join(to, 'pulled'));
    expect(startOf(out)).toMatchObject({ height: start.height, digest: start.digest });
    expect(manifest.heights[0]?.[0]).toBeGreaterThan(start.height);
    expect(Object.keys(manifest.lists ?? {}).sort()).toEqual(Object.keys(expected.lists ?? {}).sort());
    expect(pointsOf(manifest)).toEqual(pointsOf(expected).filter((one) => one.height >= start.height));
    await check(out);
    await expectSame(out, start.height, pulls.all, pulls.complete, () => random(8) === 0);
  }
  const full = join(temporaryFolder(), 'full');
  await pulls.build(full, join(to, 'pulled'));
  expect(tree(out)).toEqual(tree(full));
});

it('equals a mirror with all history, and other mirrors can start from it', async () => {
  pulls.node.replace(CHAIN.slice(0, LENGTH));
  const [one, other] = [join(temporaryFolder(), 'one'), join(temporaryFolder(), 'other')];
  await pulls.pull(to);
  await pulls.follow();
  await pulls.build(one, join(to, 'pulled'));
  const mirrors = await Promise.all([pulls.all, one].map((root) => readOther(root, new RecordingLog())));
  await compareMirrors(mirrors, new RecordingLog());
  const further = temporaryFolder();
  expect(await pulls.startAt(further, one)).toMatchObject({ height: 59 });
  await pulls.build(other, join(further, 'pulled'));
  await check(other);
  await expectSame(other, 59, pulls.all, pulls.complete, () => random(30) === 0);
});

it.each([
  { layout: 'archive', lists: false },
  { layout: 'files', lists: false },
  { layout: 'files', lists: true, dialect: 'hiro' },
] as const)('has etchings with their supply with %j', async (options) => {
  const out = join(temporaryFolder(), 'dist');
  const { manifest } = await pulls.build(out, join(to, 'pulled'), options);
  expect(manifest.lists?.etchings?.counts).toBe(true);
  expect([startOf(out)?.height, manifest.lists?.balances !== undefined]).toEqual([start.height, options.lists]);
  await check(out);
});

it('is not used by builds of later blocks, nor of an input without the start', async () => {
  const [out, input] = [join(temporaryFolder(), 'dist'), temporaryFolder()];
  cpSync(join(to, 'pulled'), input, { recursive: true });
  const first = await pulls.build(out, input);
  const before = tree(out);
  renameSync(join(input, 'start'), join(input, '.start'));
  const { manifest } = await pulls.build(out, input);
  expect(Object.keys(manifest.lists ?? {}).sort()).toEqual(['address_activity', 'etchings', 'rune_activity']);
  expect([manifest.lists?.etchings?.counts, manifest.ledger, startOf(out)]).toEqual([undefined, undefined, undefined]);
  await check(out);
  renameSync(join(input, '.start'), join(input, 'start'));
  expect((await pulls.build(out, input)).manifest).toEqual(first.manifest);
  expect(tree(out)).toEqual(before);
  const later = await pulls.build(out, input, { blocks: { from: start.height + 3, to: 1000 } });
  expect([later.manifest.lists?.balances, startOf(out)]).toEqual([undefined, undefined]);
  await check(out);
});

it('has balances and outputs before any rune moved above its block', async () => {
  const [out, input] = [join(temporaryFolder(), 'dist'), temporaryFolder()];
  const quiet = chainOf(60, new Array(14).fill([]), CHAIN[59]?.hash);
  pulls.node.replace([...CHAIN.slice(0, 60), ...quiet]);
  const { height } = await pulls.start(input, 66);
  expect(height).toBe(59);
  const { manifest } = await pulls.build(out, join(input, 'pulled'));
  expect(manifest).toMatchObject({ heights: [], lists: { balances: {}, outputs: {} }, ledger: { height } });
  await check(out);
});

it('refuses two starts', async () => {
  const other = temporaryFolder();
  cpSync(join(to, 'pulled/start'), other, { recursive: true });
  const error = await failedBuild(join(temporaryFolder(), 'dist'), { inputs: [join(to, 'pulled'), other], layout: 'archive' });
  expect([error.exitCode, error.message]).toEqual([
    2,
    expect.stringContaining('but must have exactly one file of outputs and one of runes'),
  ]);
});

describe('a wrong start', () => {
  /** Changes a table of the ledger with which an input starts, and removes the table's checksum. */
  async function changeTable(input: string, table: 'outputs' | 'runes', change: string): Promise<void> {
    const path = join(input, `start/${table}.parquet`);
    rmSync(`${path}.sha256`, { force: true });
    const store = await Store.open({ memoryLimit: '700MB', threads: 1, scratch: temporaryFolder() });
    try {
      await store.run(`CREATE TABLE changed AS FROM '${path}'; ${change}; COPY changed TO '${path}' (FORMAT parquet)`);
    } finally {
      store.close();
    }
  }

  /** Copies the pull, and changes one of the ledger's tables. */
  async function forged(table: 'outputs' | 'runes', change: string): Promise<string> {
    const input = temporaryFolder();
    cpSync(join(to, 'pulled'), input, { recursive: true });
    await changeTable(input, table, change);
    return input;
  }

  it.each([
    ['an amount', 'outputs', `UPDATE changed SET units = '9' || units WHERE rowid = 0`],
    ['a missing output', 'outputs', 'DELETE FROM changed WHERE rowid = 0'],
    ['a burned amount', 'runes', `UPDATE changed SET burned = burned || '1' WHERE rowid = 0`],
  ] as const)('with %s stops the build, and is found in an output that claims the true digest', async (_, table, change) => {
    const [input, out] = [await forged(table, change), join(temporaryFolder(), 'dist')];
    const options = { inputs: [input], layout: 'archive', lists: true, limits: pulls.limits } as const;
    const failure = await failedBuild(out, options);
    expect([failure.exitCode, failure.message]).toEqual([
      2,
      expect.stringContaining('the ledger in the start folder of the input has the digest'),
    ]);
    // Builds a mirror from the wrong ledger, after giving the input the digest of this ledger. Then puts the true
    // digest into the manifest and the root, as a liar would.
    const [digest = ''] = /[0-9a-f]{64}/.exec(failure.message) ?? [];
    await changeTable(input, 'runes', `UPDATE changed SET start_digest = '${digest}'`);
    const { manifest } = await pulls.build(out, input);
    expect(manifest.ledger).toMatchObject({ height: start.height, digest });
    const { root } = StoredArchive.in(out);
    const claimed = { digest: start.digest };
    const lists = { ...root.lists!, start: { ...root.lists!.start!, ...claimed }, ledger: { ...root.lists!.ledger!, ...claimed } };
    const content = gzipMember(Buffer.from(renderRoot({ ...root, lists })));
    const { name, file } = sealFile(content);
    writeFileSync(join(out, 'archive', `${name}.bin`), file);
    const changed = { ...manifest, archive: { root: name, bytes: content.length }, ledger: { ...manifest.ledger, ...claimed } };
    writeFileSync(join(out, 'runes/v1/manifest.json'), `${JSON.stringify(changed, null, 2)}\n`);
    const error = (await check(out).catch((one: CliError) => one)) as CliError;
    expect(error.details.join()).toMatch(/but it has|sends? .*more than (?:it|they) received|do(?:es)? not|never made/);
  });
});
