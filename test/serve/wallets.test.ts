/** Runs the wallet's program in docs/client.md, unchanged, with two signed mirrors and an Esplora server. */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { MANIFEST } from '../support/archives.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { exampleBelow } from '../support/builtClient.ts';
import { KEY, STRANGER, signedFiles } from '../support/lyingHost.ts';
import { writeRows } from '../support/nodeRows.ts';
import { grown, modelOf, outputsMade } from '../support/outputStates.ts';
import { memoryOf } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';
import { listening, startServer } from '../support/server.ts';

it('chooses inputs without runes, and says which outputs are unknown', async () => {
  const random = integersFor('inputs of a wallet');
  const chain = grown([], 30, random);
  const [work, tip] = [temporaryFolder(), memoryOf(chain).rows.at(-1)?.block_height ?? -1];
  writeRows(memoryOf(chain), join(work, 'in'));
  const folders = [join(work, 'one'), join(work, 'two')];
  await testBuild(join(work, 'one'), { inputs: [join(work, 'in')], layout: 'archive', lists: true });
  cpSync(join(work, 'one'), join(work, 'two'), { recursive: true });
  for (const [i, key] of [KEY, STRANGER].entries()) {
    const path = join(folders[i] ?? '', MANIFEST);
    const signed = signedFiles(new Map([[MANIFEST, readFileSync(path)]]), new Date().toISOString(), {}, key);
    writeFileSync(path, signed.get(MANIFEST) ?? '');
  }
  const hosts = await Promise.all(folders.map((folder) => startServer(folder)));

  // The value of an output in satoshis is its index in this list. One output is unconfirmed.
  const made = outputsMade(chain).filter(({ height }) => height > 0 && height <= tip);
  const utxos: object[] = made.map(({ outpoint, height, blockHash }, value) => {
    const [txid, vout] = outpoint.split(':');
    return { txid, vout: Number(vout), value, status: { block_height: height, block_hash: blockHash } };
  });
  utxos.push({ txid: 'ab'.repeat(32), vout: 0, value: 1e9, status: { confirmed: false } });
  const server = createServer(({ url }, response) =>
    response.end(JSON.stringify(url === '/api/blocks/tip/height' ? tip : url === '/api/address/bcrt1qalice/utxo' ? utxos : undefined)),
  );
  const esplora = await listening(server);
  try {
    const example = exampleBelow('Choosing inputs', join(work, 'one'), [
      ['https://mirror.example.org', `${hosts[0]?.url}`],
      ['https://runes.example.com', `${hosts[1]?.url}`],
      ['tip - 100', 'tip - 20'],
      ['https://esplora.example.net', esplora.url],
      [/'PeterNeumann[^']*'/, `'${KEY.publicText}'`],
      [/'runes[.]example[^']*'/, `'${STRANGER.publicText}'`],
    ]);
    const run = (sats: number) => promisify(execFile)(process.execPath, [example, 'bcrt1qalice', String(sats)]);

    const model = modelOf(chain.slice(0, tip + 1));
    const rows = new Set(memoryOf(chain).rows.map((row) => row.block_height));
    const isNone = ({ outpoint, height }: (typeof made)[number]) =>
      model.output(outpoint) === null && (height <= tip - 20 || rows.has(height));
    const safe = made.map((one, value) => ({ ...one, value })).filter(isNone);
    const [largest, next] = safe.slice(-2).reverse();
    const { stdout } = await run((largest?.value ?? 0) + 1);
    expect(stdout).toBe(`${largest?.outpoint} ${largest?.value}\n${next?.outpoint} ${next?.value}\n`);
    const total = safe.reduce((sum, { value }) => sum + value, 0);
    expect((await run(total)).stdout.split('\n')).toHaveLength(safe.filter(({ value }) => value > 0).length + 1);
    await expect(run(total + 5)).rejects.toMatchObject({
      stderr: expect.stringMatching(
        new RegExp(`Error: 5 sats are missing. Unknown outputs:\n(?:.*\n)*${'ab'.repeat(32)}:0: the height of its block is not given`),
      ),
    });
  } finally {
    esplora.close();
    for (const host of hosts) await host.close();
  }
});
