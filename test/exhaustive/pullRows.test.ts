/** Tests pulls of published rows from a mirror with random histories, and kills pulls at random moments. */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { env } from 'node:process';
import handler from 'serve-handler';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { start } from '../support/cli.ts';
import { FakeNode } from '../support/fakeNode.ts';
import { memoryRows, pulledRows, pulledTree } from '../support/nodePulls.ts';
import { check } from '../support/outputs.ts';
import { testPull } from '../support/pull.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

const KILLS = Number(env['KILLS'] ?? 6);
const STEPS = Number(env['FC_RUNS'] ?? 2);
const work = temporaryFolder();
const options = { parquet: true, layout: 'archive', lists: true } as const;
let server: Server;
let base: string;
let requested: () => void = () => undefined;
beforeAll(async () => {
  server = createServer((request, response) => {
    requested();
    return handler(request, response, { public: join(work, 'dist'), cleanUrls: false, directoryListing: false }).catch(() =>
      response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function mirror(chain: Parameters<typeof memoryOf>[0]): Promise<void> {
  const node = await FakeNode.start(chain, { network: 'regtest' });
  await testPull(`core:${node.url}`, join(work, 'node'), { confirmations: 100 });
  await node.close();
  await testBuild(join(work, 'dist'), { inputs: [join(work, 'node')], ...options });
}

it(`follows a donor through ${STEPS} steps of a random history, with builds of the same bytes`, async () => {
  const next = randomFor('histories of a donor of rows');
  const random = (below: number) => Math.floor(next() * below);
  const [to, out] = [join(work, 'input'), join(work, 'again')];
  let chain = extended([], 150 + random(100), random, 3);
  for (let step = 0; step < STEPS; step += 1) {
    const depth = random(3) === 0 ? 0 : random(40);
    chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(random(2) === 0 ? 3 : 120), random, 3);
    await mirror(chain);
    await testPull(base, to, { confirmations: 60 });
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    await testBuild(out, { inputs: [to], ...options });
    expect(tree(out)).toEqual(tree(join(work, 'dist')));
  }
  await check(out);
  const fresh = temporaryFolder();
  await testPull(base, fresh, { confirmations: 60 });
  expect(pulledTree(to)).toEqual(pulledTree(fresh));
}, 600_000);

it(`a pull of rows is killed ${KILLS} times`, async () => {
  const next = randomFor('kills of pulls of rows');
  // Removes the mirror of the other test, and starts another chain.
  for (const folder of ['node', 'dist']) rmSync(join(work, folder), { recursive: true, force: true });
  await mirror(extended([], 340, (below) => Math.floor(next() * below), 3));
  const [to, whole] = [temporaryFolder(), temporaryFolder()];
  await testPull(base, whole);
  let killed = 0;
  for (let tried = 0; killed < KILLS && tried < 5 * KILLS; tried += 1) {
    // Later kills start with an empty folder if nothing is left to fetch.
    const child = start('pull', ['--from', base, '--to', to, '--rate', '0', '--concurrency', '2'], '/');
    let left = Math.floor(next() * 14);
    requested = () => {
      left -= 1;
      if (left < 0) setTimeout(() => child.kill('SIGKILL'), Math.floor(next() * 60));
    };
    const [code] = await once(child, 'exit');
    requested = () => undefined;
    if (code === 0) rmSync(join(to, 'pulled'), { recursive: true, force: true });
    else killed += 1;
  }
  expect(killed).toBe(KILLS);
  await testPull(base, to);
  expect(pulledTree(to)).toEqual(pulledTree(whole));
}, 600_000);
