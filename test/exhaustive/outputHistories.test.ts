/** Random chains of blocks: every build answers what the ledger of ord's rules has unspent, and equals a full build. SEED repeats a run. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FetchMirror } from '../../src/hosts/fetch.ts';
import { addressOf } from '../../src/runes/address.ts';
import { runeIdText } from '../../src/runes/ledger.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { fileServer } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { hash256, type MemoryChain, outpointOf } from '../support/memoryLedger.ts';
import { csv } from '../support/nodeRows.ts';
import { check } from '../support/outputs.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

const CHAINS = Number(process.env['CHAINS'] ?? 1);

/** Writes the rows of a chain as files from a node, one for each block. */
function writeRows({ rows, ledger }: Pick<MemoryChain, 'rows' | 'ledger'>, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const files = new Map<string, string>([['runes.csv', csv([...ledger.byId.values()].map(({ row }) => row))]]);
  for (const height of new Set(rows.map((row) => row.block_height))) {
    files.set(`ledger-${height}.csv`, csv(rows.filter((row) => row.block_height === height)));
  }
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
}

interface Expected {
  readonly output: string;
  readonly address?: string;
  readonly location: { readonly block_height: number; readonly tx_id: string };
}

/** What the API must say about all unspent outputs, by outpoint, in dialect hiro. */
function unspentOf({ ledger, rows }: MemoryChain): Map<string, Expected> {
  const made = new Map(rows.filter(({ operation }) => operation === 'receive').map((row) => [`${row.tx_id}:${row.output}`, row]));
  return new Map(
    [...ledger.outputs].map(([output, { script, balances }]) => {
      const row = made.get(output);
      const address = addressOf(script, NETWORKS.regtest, hash256);
      const runes = balances.map(({ rune, amount }) => {
        const { id, number, name, spaced_name } = ledger.rune(rune)!.row;
        expect(id).toBe(runeIdText(rune));
        return { rune: { id, number, name, spaced_name }, balance: String(amount) };
      });
      const { block_hash, block_height, tx_id, tx_index, timestamp } = row!;
      const location = { block_hash, block_height, tx_id, tx_index, timestamp };
      return [output, { output, ...(address === null ? {} : { address }), location, runes }];
    }),
  );
}

it('unspent outputs are those of the ledger after any reorganisation, and an incremental build equals a full one', async () => {
  for (let number = 0; number < CHAINS; number += 1) {
    const next = randomFor(`outputs ${number}`);
    const random = (below: number) => Math.floor(next() * below);
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const options = { inputs: [input], dialect: 'hiro', layout: 'archive', pageSizes: [3, 6], lists: true, objectSize: 4096 } as const;
    let chain = extended([], 150 + random(20), random, 40);
    for (let step = 0; step < 6; step += 1) {
      const depth = [0, 0, 1, 3, 20, 0][step] ?? 0;
      if (step > 0) chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(step === 5 ? 30 : 3), random, 40);
      const memory = memoryOf(chain);
      writeRows(memory, input);
      await testBuild(out, options);
      const full = join(work, `full-${step}`);
      const { manifest } = await testBuild(full, options);
      expect(tree(out)).toEqual(tree(full));
      await check(out);
      expect(manifest.lists?.outputs).toEqual({});

      const tip = memory.rows.at(-1)!;
      const asOf = { block_height: tip.block_height, block_hash: tip.block_hash };
      const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
      const ask = async (path: string): Promise<unknown> => (await mirror.answer(new Request(`http://host/runes/v1/${path}`)))?.json();
      const unspent = unspentOf(memory);
      const made = new Set(memory.rows.filter(({ operation }) => operation === 'receive').map((row) => `${row.tx_id}:${row.output}`));
      expect(made.size).toBeGreaterThan(unspent.size);
      for (const output of [...made, `${'ab'.repeat(32)}:0`]) {
        if (!unspent.has(output) && random(4) > 0) continue;
        expect(await ask(`outputs/${output}`)).toEqual({ ...asOf, ...(unspent.get(output) ?? { output, runes: [] }) });
      }
      const addresses = new Set([...unspent.values()].flatMap(({ address = [] }) => address));
      expect(addresses.size).toBeGreaterThan(0);
      for (const address of [...addresses, 'bcrt1qnobody']) {
        const all = [...unspent.values()].filter((one) => one.address === address);
        const place = ({ output }: Expected) =>
          Buffer.from(outpointOf(output.slice(0, 64), 0))
            .reverse()
            .toString('hex')
            .slice(8) + output.slice(65).padStart(10, '0');
        all.sort((a, b) => b.location.block_height - a.location.block_height || (place(a) < place(b) ? -1 : 1));
        for (const [offset, limit] of [
          [0, 6],
          [random(all.length + 2), 1 + random(6)],
        ] as const) {
          expect(await ask(`addresses/${address}/outputs?offset=${offset}&limit=${limit}`)).toEqual({
            ...asOf,
            limit,
            offset,
            total: all.length,
            results: all.slice(offset, offset + limit),
          });
        }
      }
    }
  }
}, 240_000);

describe('an archive of rows from a node', () => {
  const random = randomFor('outputs of one chain');
  const chain = extended([], 40, (below) => Math.floor(random() * below), 40);
  const memory = memoryOf(chain);
  const build = async (work: string, rows: MemoryChain['rows']) => {
    writeRows({ rows, ledger: memory.ledger }, join(work, 'in'));
    return testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout: 'archive', lists: true });
  };
  const without = <Row extends object>({ spent, ...row }: Row & { readonly spent?: unknown }) => row;

  it('without a spent output that rows say is spent does not verify', async () => {
    const work = temporaryFolder();
    const at = memory.rows.findIndex(({ spent }) => spent !== null && /:bcrt1/.test(spent));
    await build(
      work,
      memory.rows.map((row, i) => (i === at ? { ...row, spent: null } : row)),
    );
    await expect(check(join(work, 'out'))).rejects.toMatchObject({
      details: [expect.stringMatching(/do not add up to its balance/), expect.any(String)],
    });
  });

  it('has outputs only while all of its rows say what is spent', async () => {
    const work = temporaryFolder();
    expect((await build(work, memory.rows)).manifest.lists?.outputs).toEqual({});
    const name = `ledger-${memory.rows.at(-1)?.block_height}.csv`;
    const [path, old] = [
      join(work, 'in', name),
      memory.rows.filter(({ block_height }) => block_height === memory.rows.at(-1)?.block_height),
    ];
    writeFileSync(path, csv(old.map(without)));
    const options = { inputs: [join(work, 'in')], layout: 'archive', lists: true } as const;
    expect((await testBuild(join(work, 'out'), options)).manifest.lists?.outputs).toBeUndefined();
    await check(join(work, 'out'));
    const again = await build(work, memory.rows);
    expect([again.wasFull, again.manifest.lists?.outputs]).toEqual([true, {}]);
    await check(join(work, 'out'));
  });
});
