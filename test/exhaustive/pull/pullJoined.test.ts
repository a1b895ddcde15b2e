/**
 * Tests pulls over HTTP, which join settled blocks (at least `confirmations` below the last block) into files of a
 * hundred blocks. Includes reorganisations and damage.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow, temporaryFolder, tree } from '../../support/build.ts';
import { block, failedPull, leanBuild, testPull } from '../../support/pull.ts';
import { base, builtDigest, server, shortChain, to, useServer } from '../../support/recordedServer.ts';

useServer();

describe('settled blocks in files of a hundred', () => {
  const wanted = { from: 1098, to: undefined };
  /** A number of confirmations so high that no block is settled. */
  const unsettled = 1000;
  /** Makes a chain whose blocks up to 1199 are settled, in files of a hundred. Blocks 1098, 1099 and 1150 are empty. */
  const longChain = () => {
    shortChain(1210, 1100);
    server.blocks.delete(1150);
  };
  const namesOf = (folder: string) => filesBelow(join(folder, 'pulled')).map((path) => path.replace(/-[0-9a-f]{16}/, '-x'));
  const fetched = () => [...new Set(server.requests.flatMap((target) => /blocks\/([0-9]+)\/.*limit=60$/.exec(target)?.[1] ?? []))];
  const fresh = async (options: Parameters<typeof testPull>[2] = {}): Promise<string> => {
    const folder = join(temporaryFolder(), 'input');
    await testPull(base, folder, { wanted, ...options });
    return folder;
  };
  const singles = Array.from({ length: 11 }, (_, i) => `1000/${1200 + i}-x.ndjson.gz`);

  it('share a file, which builds read and later pulls do not fetch again', async () => {
    longChain();
    await testPull(base, to, { wanted });
    const joined = ['1000/1098-1099-x.ndjson.gz', '1000/1100-1199-x.ndjson.gz'].flatMap((name) => [name, `${name}.sha256`]);
    expect(namesOf(to)).toEqual([...joined, ...singles, 'blocks.json']);
    const manifest = await leanBuild([to]);
    expect(manifest.heights).toEqual([
      [1100, 1149],
      [1151, 1210],
    ]);
    expect(manifest.sources).toEqual([{ rules: 'server', blocks: [[1098, 1210]] }]);
    expect(await builtDigest(await fresh({ confirmations: unsettled }))).toBe(manifest.digest);
    const before = tree(to);
    server.requests.length = 0;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, heights: [{ first: 1098, last: 1210 }] });
    // With other numbers of confirmations, the pull must also fetch nothing: if the joined file has the highest settled
    // block, and if no block is settled.
    expect(await testPull(base, to, { confirmations: 11 })).toMatchObject({ blocks: 0 });
    expect(await testPull(base, to, { confirmations: unsettled })).toMatchObject({ blocks: 0 });
    expect(fetched()).toEqual([]);
    expect(tree(to)).toEqual(before);
  });

  it.each([
    ['as many', 1195, 1210],
    ['fewer', 1185, 1193],
    ['more', 1101, 1320],
  ])('are replaced by %s in a deep reorganisation, and the other files stay', async (_, fork, last) => {
    longChain();
    await testPull(base, to, { wanted });
    const before = tree(to);
    for (let height = fork; height <= Math.max(1210, last); height += 1) {
      if (height <= last) server.blocks.set(height, block(height, 4, 'fork'));
      else server.blocks.delete(height);
    }
    const error = await failedPull(base, to);
    expect(error.message).toMatch(new RegExp(`^block ${fork} differs between`));
    expect(tree(to)).toEqual(before);
    const confirmations = Number(/--confirmations ([0-9]+) or more/.exec(error.details[0] ?? '')?.[1]);
    server.requests.length = 0;
    // The first attempt fails in the middle.
    server.fault = (target) => (target.includes(`/${fork + 2}/activity?offset=0&limit=60`) ? { kind: 'status', status: 500 } : undefined);
    expect((await failedPull(base, to, { confirmations, retries: 0 })).exitCode).toBe(3);
    server.fault = () => undefined;
    await testPull(base, to, { confirmations });
    expect(fetched().map(Number)).toEqual(Array.from({ length: last - fork + 1 }, (_, i) => fork + i));
    await testPull(base, to);
    expect(tree(to)).toEqual(tree(await fresh()));
  });

  it('are compared with the checksum of the file', async () => {
    longChain();
    await testPull(base, to, { wanted });
    const [file = ''] = filesBelow(join(to, 'pulled')).filter((path) => path.includes('/1100-1199-'));
    appendFileSync(join(to, 'pulled', file), '\0');
    const error = await failedPull(base, to, { confirmations: 20 });
    expect([error.exitCode, error.message]).toEqual([2, `${to}/pulled/${file} cannot be read: its SHA-256 differs from its checksum file`]);
  });
});
