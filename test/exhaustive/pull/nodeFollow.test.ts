/** Tests `pull --follow`: it builds new blocks and reorganisations as they arrive, survives failures, and ends cleanly on SIGTERM. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { attempt } from '../../../src/attempt.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { start } from '../../support/cli.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { pullChain } from '../../support/nodePulls.ts';
import { testPull } from '../../support/pull.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { until } from '../../support/until.ts';

const random = integersFor('following');
const CHAIN = extended([], 24, random);
const work = temporaryFolder();
const [to, out] = [join(work, 'input'), join(work, 'dist')];
let node: FakeNode;
let child: ChildProcess;
let said = '';

beforeAll(async () => {
  node = await FakeNode.start(CHAIN.slice(0, 20), { network: 'regtest' });
  child = start(
    'pull',
    ['--from', `core:${node.url}`, '--to', to, '--follow', '--retries', '1', '--', '--out', out, '--dialect', 'hiro'],
    work,
  );
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text.toString()));
});
afterAll(async () => {
  child.kill('SIGKILL');
  await node.close();
});

/** Waits until the build has all blocks up to a height. */
const untilBuilt = (height: number): Promise<void> =>
  until(() => {
    if (child.exitCode !== null) throw new Error(`block ${height} was not built: ${said}`);
    const manifest = attempt(() => JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8'))) as
      | { sources: { blocks: [number, number][] }[] }
      | undefined;
    return manifest?.sources[0]?.blocks.at(-1)?.[1] === height;
  });

/** Returns the digest of a mirror that was built from these blocks alone, without a reorganisation. */
async function digestOf(blocks: typeof CHAIN): Promise<string> {
  const folder = temporaryFolder();
  await pullChain(blocks, folder);
  const { manifest } = await testBuild(join(folder, 'dist'), { inputs: [join(folder, 'pulled')], dialect: 'hiro' });
  return manifest.digest;
}
const builtDigest = () => (JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')) as { digest: string }).digest;

it('builds new blocks, a reorganisation, and blocks that came while the node or the build failed', async () => {
  await untilBuilt(19);
  node.replace(CHAIN.slice(0, 21));
  await untilBuilt(20);
  expect(builtDigest()).toBe(await digestOf(CHAIN.slice(0, 21)));

  const branch = extended(CHAIN.slice(0, 18), 5, random);
  node.replace(branch);
  await untilBuilt(22);
  expect(builtDigest()).toBe(await digestOf(branch));
  expect(said).toMatch(/5 blocks to 22, 3 replaced: [0-9,]+ records?; pulled in [0-9.]+ s, built in [0-9.]+ s/);

  // Adds a file that no build can read, so the next build fails. After the file is removed, a build has the blocks of both pulls.
  writeFileSync(join(to, 'pulled/broken.json'), '{"nothing": 1}');
  const longer = extended(branch, 2, random);
  node.replace(longer.slice(0, 24));
  await until(() => said.includes('the build failed (exit code 2); trying again in 60 s'));
  expect(said).toContain('broken.json has an unrecognised format');
  writeFileSync(join(to, 'pulled/broken.json'), '[]');
  node.replace(longer);
  await untilBuilt(24);
  expect(builtDigest()).toBe(await digestOf(longer));
}, 600_000);

it('ends with exit code 0 on a signal, and leaves a folder that a pull continues', async () => {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  expect([code, said]).toEqual([0, expect.stringContaining('Stopped following.')]);
  expect(await testPull(`core:${node.url}`, to)).toMatchObject({ blocks: 0, replaced: 0 });
});

it('starts the first build only when the first wanted block exists', async () => {
  const [folder, built] = [join(work, 'later'), join(work, 'later-dist')];
  const late = await FakeNode.start(CHAIN.slice(0, 20), { network: 'regtest' });
  const following = start(
    'pull',
    ['--from', `core:${late.url}`, '--to', folder, '--blocks', '22..', '--follow', '--', '--out', built],
    work,
  );
  let text = '';
  for (const stream of [following.stdout, following.stderr]) stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const untilSaid = (what: string) =>
    until(() => {
      if (following.exitCode !== null) throw new Error(`the pull ended: ${text}`);
      return text.includes(what);
    });
  try {
    await untilSaid('Following');
    late.replace(CHAIN.slice(0, 21));
    // Waits for more calls to the node, which the pull makes once a second. Block 22 does not exist yet, so the pull must not start a
    // build, which would fail.
    const looks = late.calls.length;
    await until(() => late.calls.length >= looks + 6);
    expect(text).not.toContain('the build failed');
    late.replace(CHAIN);
    await untilSaid('blocks to 23');
    expect(text).not.toContain('the build failed');
    expect(JSON.parse(readFileSync(join(built, 'runes/v1/manifest.json'), 'utf8')).sources[0].blocks).toEqual([[22, 23]]);
  } finally {
    following.kill('SIGTERM');
    await once(following, 'exit');
    await late.close();
  }
}, 600_000);
