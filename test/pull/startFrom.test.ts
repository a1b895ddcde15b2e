/** Pulls from a node that start at the ledger of another mirror. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sealFile } from '../../src/contract/archiveFile.ts';
import { DocumentWriter, documentsOf } from '../../src/engine/archive/documentWriter.ts';
import { digestOf } from '../../src/engine/archive/ledgerDigest.ts';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../src/engine/render/compress.ts';
import type { ListTables } from '../../src/format/listTables.ts';
import { renderRoot } from '../../src/format/root.ts';
import { limitsWith } from '../../src/limits.ts';
import { addressOf, scriptOf } from '../../src/runes/address.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { type FakeBlock, FakeNode } from '../support/fakeNode.ts';
import { hash256 } from '../support/memoryLedger.ts';
import { memoryRows, pulledRows, pulledTree } from '../support/nodePulls.ts';
import { check } from '../support/outputs.ts';
import { type PlainFiles, startPlainFiles } from '../support/plainFiles.ts';
import { failedPull, testPull } from '../support/pull.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

const limits = limitsWith({ listLevels: { steps: [40, 20, 4], unsettled: 2 }, spentBlocks: 30, startOutputs: 7 });
const next = randomFor('starts');
const random = (below: number) => Math.floor(next() * below);
const CHAIN = extended([], 166, random, 6);
/** Blocks that the mirror has, and the last block of its lower levels. */
const [LENGTH, START] = [146, 139];

let node: FakeNode;
let donor: PlainFiles;
const out = join(temporaryFolder(), 'dist');
const complete = temporaryFolder();

beforeAll(async () => {
  node = await FakeNode.start(CHAIN.slice(0, LENGTH), { network: 'regtest' });
  await testPull(`core:${node.url}`, complete, { limits });
  const { manifest } = await testBuild(out, { inputs: [complete], layout: 'archive', lists: true, limits });
  expect(manifest.ledger).toMatchObject({ height: START, network: 'regtest' });
  donor = await startPlainFiles(out);
});
afterAll(async () => {
  await donor.close();
  await node.close();
});

const pull = (to: string, donors: readonly string[] = [donor.base], options = {}) =>
  testPull(`core:${node.url}`, to, { limits, donors: donors.map((url) => new URL(url)), ...options });
const failed = (to: string, donors: readonly string[], options = {}) =>
  failedPull(`core:${node.url}`, to, { limits, retries: 1, donors: donors.map((url) => new URL(url)), ...options });
const rowsAbove = (chain: readonly FakeBlock[], height: number) =>
  memoryRows({ rows: memoryOf(chain).rows.filter((row) => row.block_height > height) });

describe('a start', () => {
  it('gives the rows and files of a pull that read all blocks, through new blocks and reorganisations', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    await pull(to);
    expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN.slice(0, LENGTH), START));
    const built = join(to, 'dist');
    const { manifest } = await testBuild(built, { inputs: [join(to, 'pulled')], layout: 'archive', lists: true, limits });
    expect(manifest.lists?.etchings?.counts).toBe(true);
    await check(built);
    const fork = extended(CHAIN.slice(0, LENGTH - 5), 20, random, 6);
    for (const chain of [CHAIN, fork, fork.slice(0, fork.length - 1), extended(fork, 30, random, 6)]) {
      node.replace(chain);
      await pull(to, [donor.base], { confirmations: 100 });
      await testPull(`core:${node.url}`, complete, { limits, confirmations: 100 });
      expect(await pulledRows(to)).toEqual(rowsAbove(chain.length < fork.length ? fork : chain, START));
      const all = pulledTree(complete);
      // The first file of a hundred blocks begins in the middle of a hundred.
      const same = Object.entries(pulledTree(to)).filter(([path]) => /^[0-9]+\/([0-9]+)-\1\.parquet$/.test(path) && path in all);
      for (const [path, hash] of same) expect([path, hash]).toEqual([path, all[path]]);
    }
  });

  it('continues with the node alone, and from a pruned node', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    node.options.prunedBelow = START - 4;
    try {
      await pull(to);
      expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN.slice(0, LENGTH), START));
      node.options.prunedBelow = START + 1;
      const error = await failed(temporaryFolder(), [donor.base]);
      expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining(`has pruned blocks after ${START}`)]);
    } finally {
      node.options.prunedBelow = undefined;
    }
    node.replace(CHAIN);
    await testPull(`core:${node.url}`, to, { limits });
    expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN, START));
  });

  it('continues after a failure with the files that it has, and after a kill before its last step', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    donor.asked.length = 0;
    let answers = 2;
    const { intercept } = donor;
    donor.intercept = (path, file, response) => {
      if (path.startsWith('archive/') && --answers < 0) {
        response.writeHead(503).end();
        return true;
      }
      return intercept(path, file, response);
    };
    expect((await failed(to, [donor.base], { concurrency: 1 })).exitCode).toBe(3);
    donor.intercept = intercept;
    const before = donor.asked.filter((path) => path.startsWith('archive/')).slice(0, 2);
    donor.asked.length = 0;
    await pull(to);
    expect(donor.asked.filter((path) => before.includes(path))).toEqual([]);
    expect(filesBelow(join(to, 'pulled')).filter((path) => path.includes('.start'))).toEqual([]);

    const killed = temporaryFolder();
    for (const name of ['runes.parquet', 'runes.parquet.sha256', '.state'])
      cpSync(join(to, 'pulled', name), join(killed, 'pulled', name), { recursive: true });
    rmSync(join(killed, 'pulled/.state/state.json'));
    await pull(killed);
    expect(pulledTree(killed)).toEqual(pulledTree(to));
  });

  it('stops when the chain is replaced below it, and says what to do', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    await pull(to);
    const before = pulledTree(to);
    node.replace(extended(CHAIN.slice(0, START - 3), 40, random, 6));
    const other = await failed(temporaryFolder(), [donor.base]);
    expect(other.message).toContain(`block ${START} of the mirror is not in the chain of`);
    const error = await failed(to, [donor.base], { confirmations: 100 });
    expect(error.details.join()).toContain('start again from a newer height with --start-from');
    expect(pulledTree(to)).toEqual(before);
  });

  it('begins at the newest block for which all mirrors have a digest', async () => {
    const [to, input, behind] = [temporaryFolder(), temporaryFolder(), join(temporaryFolder(), 'behind')];
    node.replace(CHAIN.slice(0, LENGTH));
    await testPull(`core:${node.url}`, input, { limits, wanted: { from: undefined, to: 130 } });
    const { manifest } = await testBuild(behind, { inputs: [input], layout: 'archive', dialect: 'hiro', lists: true, limits });
    expect(manifest.ledger).toMatchObject({ height: 119 });
    const host = await startPlainFiles(behind);
    try {
      await pull(to, [donor.base, host.base]);
      expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN.slice(0, LENGTH), 119));
      const other = temporaryFolder();
      await pull(other, [host.base, donor.base]);
      expect(pulledTree(other)).toEqual(pulledTree(to));
    } finally {
      await host.close();
    }
  });

  it('takes no older blocks, and no mirrors that disagree or that have no digest', async () => {
    node.replace(CHAIN.slice(0, LENGTH));
    const older = await failed(temporaryFolder(), [donor.base], { wanted: { from: 3, to: undefined } });
    expect(older.message).toContain(`rows begin above block ${START}`);
    const lying = await otherDigest();
    try {
      const two = await failed(temporaryFolder(), [donor.base, lying.base]);
      expect(two.message).toMatch(/have different ledgers after block 139/);
    } finally {
      await lying.close();
    }
    const files = join(temporaryFolder(), 'files');
    await testBuild(files, { inputs: [complete], lists: true, limits });
    const host = await startPlainFiles(files);
    try {
      expect((await failed(temporaryFolder(), [host.base])).message).toContain('only a mirror of a node in layout archive');
    } finally {
      await host.close();
    }
  });
});

/** Serves a copy of the mirror with another digest in its manifest. */
async function otherDigest(): Promise<PlainFiles> {
  const copy = join(temporaryFolder(), 'other');
  cpSync(out, copy, { recursive: true });
  const path = join(copy, 'runes/v1/manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { ledger: { digest: string } };
  manifest.ledger.digest = 'f'.repeat(64);
  writeFileSync(path, JSON.stringify(manifest));
  return startPlainFiles(copy);
}

type Lie = (key: string, values: readonly string[]) => readonly string[];

/** Serves a copy of the mirror whose documents of outputs are changed; with a digest that fits them, if `isSealed`. */
async function liar(lie: Lie, isSealed: boolean): Promise<PlainFiles> {
  const copy = join(temporaryFolder(), 'liar');
  cpSync(out, copy, { recursive: true });
  const archive = StoredArchive.in(copy);
  const put = (content: Uint8Array) => {
    const { name, file } = sealFile(content);
    writeFileSync(join(copy, 'archive', `${name}.bin`), file);
    return name;
  };
  const lists = archive.root.lists!;
  const outputs = lists.outputs!.outputs.map((level) => {
    const writer = new DocumentWriter(8 << 20, limits, put);
    for (const { key, values } of documentsOf(archive, level))
      if (lie(key, values).length > 0) writer.add({ key, values: lie(key, values) });
    return writer.finish(level)!;
  });
  const changedLists: ListTables = { ...lists, outputs: { ...lists.outputs!, outputs } };
  const content = gzipMember(Buffer.from(renderRoot({ ...archive.root, lists: changedLists })));
  const path = join(copy, 'runes/v1/manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { ledger: { height: number; hash: string; digest: string }; archive: object };
  manifest.archive = { root: put(content), bytes: content.length };
  if (isSealed)
    manifest.ledger.digest = await digestOf(
      'regtest',
      manifest.ledger,
      changedLists,
      'contract',
      new StoredArchive(copy, manifest.archive as never),
    );
  writeFileSync(path, JSON.stringify(manifest));
  return startPlainFiles(copy);
}

describe('a mirror that lies', () => {
  const first = () => {
    const archive = StoredArchive.in(out);
    const levels = archive.root.lists!.outputs!.outputs.filter(({ last }) => last <= START);
    const documents = new Map(levels.flatMap((level) => [...documentsOf(archive, level)].map(({ key, values }) => [key, values] as const)));
    return [...documents].find(([, [place = '']]) => place.startsWith('[') && place.endsWith('"]'))![0];
  };
  const lies: Readonly<Record<string, (key: string) => Lie>> = {
    'leaves an output out': (one) => (key, values) => (key === one ? [] : values),
    'changes an amount': (one) => (key, values) => (key === one ? values.map((value) => value.replace(/"([0-9]+)"\]$/, '"9$1"]')) : values),
    'changes an address to none': (one) => (key, values) =>
      key === one ? [(values[0] ?? '').replace(/,[^,]*\]$/, ',null]'), ...values.slice(1)] : values,
  };
  it.each(Object.entries(lies))('and %s is found if its digest is that of the truth', async (_, lie) => {
    node.replace(CHAIN.slice(0, LENGTH));
    const host = await liar(lie(first()), false);
    try {
      const to = temporaryFolder();
      const error = await failed(to, [host.base]);
      expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/cannot be a start: its files have the digest/)]);
      // The folder is as before, so that another start may use it.
      await pull(to);
      expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN.slice(0, LENGTH), START));
    } finally {
      await host.close();
    }
  });

  it.each([
    [
      'an address of another network',
      (one: string): Lie =>
        (key, values) =>
          key === one
            ? [(values[0] ?? '').replace(/,[^,]*\]$/, ',"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"]'), ...values.slice(1)]
            : values,
    ],
    [
      'an amount below zero',
      (one: string): Lie =>
        (key, values) =>
          key === one ? values.map((value) => value.replace(/"([0-9]+)"\]$/, '"-$1"]')) : values,
    ],
    [
      'text that is not JSON',
      (one: string): Lie =>
        (key, values) =>
          key === one ? ['{', ...values.slice(1)] : values,
    ],
  ])('and has %s is refused even if its digest fits', async (_, lie) => {
    node.replace(CHAIN.slice(0, LENGTH));
    const host = await liar(lie(first()), true).catch(() => liar(lie(first()), false));
    try {
      const error = await failed(temporaryFolder(), [host.base]);
      expect([error.exitCode, error.message]).toEqual([
        2,
        expect.stringContaining('cannot be a start: a file has a document that no build writes'),
      ]);
    } finally {
      await host.close();
    }
  });
});

it('writes no file of a mirror outside of the folder', async () => {
  node.replace(CHAIN.slice(0, LENGTH));
  const [copy, to] = [join(temporaryFolder(), 'paths'), temporaryFolder()];
  cpSync(out, copy, { recursive: true });
  const { root } = StoredArchive.in(copy);
  const text = renderRoot(root).replaceAll(root.lists!.outputs!.outputs[0]!.files[0]!.file, '../../../../outside');
  const content = gzipMember(Buffer.from(text));
  const { name, file } = sealFile(content);
  writeFileSync(join(copy, 'archive', `${name}.bin`), file);
  const path = join(copy, 'runes/v1/manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...manifest, archive: { root: name, bytes: content.length } }));
  const host = await startPlainFiles(copy);
  try {
    expect((await failed(to, [host.base])).message).toContain('cannot be a start');
    expect(host.asked.filter((asked) => asked.includes('outside'))).toEqual([]);
  } finally {
    await host.close();
  }
});

it('converts each kind of address to its script, and refuses other text', () => {
  const { main, signet } = NETWORKS;
  const scripts = [
    Buffer.concat([Buffer.from([0x76, 0xa9, 20]), Buffer.alloc(20, 7), Buffer.from([0x88, 0xac])]),
    Buffer.concat([Buffer.from([0xa9, 20]), Buffer.alloc(20, 1), Buffer.from([0x87])]),
    Buffer.concat([Buffer.from([0, 20]), Buffer.alloc(20, 9)]),
    Buffer.concat([Buffer.from([0, 32]), Buffer.alloc(32, 9)]),
    Buffer.concat([Buffer.from([0x51, 32]), Buffer.alloc(32, 3)]),
    Buffer.from([0x51, 2, 0x4e, 0x73]),
    Buffer.concat([Buffer.from([0x60, 40]), Buffer.alloc(40, 3)]),
  ];
  for (const script of scripts) {
    const address = addressOf(script, main, hash256)!;
    expect(Buffer.from(scriptOf(address, main, hash256)!)).toEqual(script);
    expect(scriptOf(address, signet, hash256)).toBeUndefined();
    expect(scriptOf(address.toUpperCase(), main, hash256)).toBeUndefined();
    expect(scriptOf(`${address.slice(0, -1)}x`, main, hash256)).toBeUndefined();
  }
  for (const text of ['', '1', 'bc1', 'bc1q', '0'.repeat(34), '\u{1f600}', 'x'.repeat(5000)])
    expect(scriptOf(text, main, hash256)).toBeUndefined();
});
