/** Tests pulls of etchings. A build of the pulled files has the etchings of the source, even after reorganisations. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { DIALECTS, LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { parseEtchingPage } from '../../../src/pull/mirror/pullEtchings.ts';
import { readArchive } from '../../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { ETCHING_INPUTS } from '../../support/etchingVectors.ts';
import { ModelHistory } from '../../support/modelHistory.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, testPull } from '../../support/pull.ts';
import { randomFor } from '../../support/seed.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function fileHost(folder: string): Promise<PlainFiles> {
  const host = await startPlainFiles(folder);
  open.push(host);
  return host;
}

/** Starts a server of the API without a manifest, like the recorded service. */
async function apiHost(folder: string): Promise<{ readonly base: string; readonly asked: string[]; readonly mirror: LocalHost }> {
  const mirror = await startServer(folder);
  open.push(mirror);
  const asked: string[] = [];
  const base = await listen(
    createServer((incoming, response) => {
      asked.push(incoming.url ?? '');
      if (incoming.url?.includes('manifest') === true) return void response.writeHead(404).end();
      const passed = request({ host: '127.0.0.1', port: mirror.port, path: incoming.url }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      passed.end();
    }),
  );
  return { base, asked, mirror };
}

/** Returns the etchings and names of a build of these inputs, and the digest of its records. */
async function etchingsOf(...inputs: readonly string[]) {
  const out = join(temporaryFolder(), 'out');
  const { manifest } = await testBuild(out, { inputs, operationPages: false });
  const { etchings, names } = readArchive(out);
  expect(etchings.flat().length).toBeGreaterThan(0);
  return { etchings, names, digest: manifest.digest };
}

describe('a pull of the recorded data', () => {
  it.each(LAYOUTS.flatMap((layout) => DIALECTS.map((dialect) => [layout, dialect] as const)))(
    'from a mirror in layout %s and dialect %s has the same etchings',
    async (layout, dialect) => {
      const work = temporaryFolder();
      await testBuild(join(work, 'dist'), { inputs: ETCHING_INPUTS, layout, dialect });
      const { base } = await fileHost(join(work, 'dist'));
      await testPull(base, join(work, 'input'));
      expect(await etchingsOf(join(work, 'input'))).toEqual(await etchingsOf(...ETCHING_INPUTS));
    },
  );

  it('reads only the newest page again', async () => {
    const work = temporaryFolder();
    await testBuild(join(work, 'dist'), { inputs: ETCHING_INPUTS, pageSizes: [5], dialect: 'hiro' });
    const { base, asked } = await apiHost(join(work, 'dist'));
    await testPull(base, join(work, 'input'), { confirmations: 6 });
    const etchings = () => asked.filter((target) => target.includes('/etchings'));
    expect(etchings().length).toBe(13);
    const before = readFileSync(join(work, 'input/pulled/runes.parquet'));
    asked.length = 0;
    await testPull(base, join(work, 'input'), { confirmations: 6 });
    expect(etchings().length).toBeLessThan(4);
    expect(readFileSync(join(work, 'input/pulled/runes.parquet')).equals(before)).toBe(true);
  });

  it('says that the source has no etchings, and still pulls its blocks', async () => {
    const work = temporaryFolder();
    await testBuild(join(work, 'direct'), { inputs: ETCHING_INPUTS, operationPages: false });
    const { base } = await apiHost(join(work, 'direct'));
    await testPull(base, join(work, 'input'), { wanted: { from: 840000, to: 840003 } });
    // Builds a mirror without all runes, because this range of blocks does not contain all etchings.
    await testBuild(join(work, 'window'), { inputs: [join(work, 'input/pulled/840000')], operationPages: false });
    const other = await apiHost(join(work, 'window'));
    const { blocks } = await testPull(other.base, join(work, 'second'));
    expect(blocks).toBe(4);
    expect(tree(join(work, 'second/pulled'))).not.toHaveProperty('runes.parquet');
  });

  it('stops at a damaged table of runes', async () => {
    const work = temporaryFolder();
    await testBuild(join(work, 'dist'), { inputs: ETCHING_INPUTS });
    const { base } = await fileHost(join(work, 'dist'));
    await testPull(base, join(work, 'input'));
    const path = join(work, 'input/pulled/runes.parquet');
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from('x')]));
    expect((await failedPull(base, join(work, 'input'))).message).toMatch(/runes\.parquet cannot be read/);
  });
});

describe('random histories', () => {
  it.each([
    ['files', fileHost],
    ['archive', fileHost],
    ['files', apiHost],
  ] as const)('in layout %s are followed', async (layout, hostOf) => {
    const draw = randomFor(`pulled etchings ${layout} ${hostOf.name}`);
    const history = new ModelHistory(draw, { kind: 'files', blocks: 6, rows: 6 });
    const work = temporaryFolder();
    const [source, dist, input] = ['source', 'dist', 'input'].map((name) => join(work, name)) as [string, string, string];
    for (let step = 0; step < 4; step += 1) {
      const isFork = step % 3 === 2;
      for (const change of [...(isFork ? ['reorg' as const] : []), 'append'] as const) history.change(change);
      history.write(source);
      await testBuild(dist, { inputs: [source], layout, pageSizes: [2], objectSize: 4096, dialect: 'hiro' });
      const { base } = await hostOf(dist);
      // Names the first height, because otherwise a pull from a server begins at block 840,000.
      await testPull(base, input, { confirmations: isFork ? 1000 : 1, wanted: { from: 3990, to: undefined } });
      expect(await etchingsOf(input), `step ${step}`).toEqual(await etchingsOf(source));
    }
  });
});

describe('a page of etchings', () => {
  const page = (terms: string, cap: string) =>
    `{"limit":1,"offset":0,"total":1,"results":[{"id":"1:0","name":"A","spaced_name":"A","number":0,"divisibility":2,"symbol":"¤","turbo":true,"mint_terms":{"amount":"0.01","cap":${cap},${terms}},"supply":{"premine":"1.00"},"location":{"block_hash":"${'0'.repeat(64)}","block_height":1,"tx_id":"","tx_index":0,"timestamp":0}}]}`;
  const none = '"height_start":null,"height_end":null,"offset_start":null,"offset_end":null';

  it('keeps all digits of terms', () => {
    const terms = none.replace('"height_end":null', '"height_end":18446744073709551615');
    expect(parseEtchingPage(page(terms, '"3402823669209384634633746074317682114.55"')).runes).toEqual([
      expect.objectContaining({
        terms_height_end: '18446744073709551615',
        terms_cap: '340282366920938463463374607431768211455',
        terms_amount: '1',
        premine: '100',
        tx_id: '',
      }),
    ]);
  });

  it.each(['"1e5"', '5', '"-1"', '"340282366920938463463374607431768211456"', '"99999999999999999999999999999999999999.99"'])(
    'is invalid with the cap %s',
    (cap) => {
      expect(() => parseEtchingPage(page(none, cap))).toThrow();
    },
  );
});
