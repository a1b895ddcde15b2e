/** Tests pulls from a node that start at the ledger of another mirror. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sealFile } from '../../../src/contract/archiveFile.ts';
import { DocumentWriter, documentsOf, lineOf, type StoredDocument } from '../../../src/engine/archive/documentWriter.ts';
import { digestOf } from '../../../src/engine/archive/readLedger.ts';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../../src/engine/render/compress.ts';
import type { DocumentLevel } from '../../../src/format/levels.ts';
import type { ListTables } from '../../../src/format/listTables.ts';
import { renderRoot } from '../../../src/format/root.ts';
import { ChosenOutputs } from '../../../src/pull/node/chosenOutputs.ts';
import { readCoins } from '../../../src/pull/node/nodeAnswers.ts';
import { addressOf, scriptOfAddress } from '../../../src/runes/address.ts';
import { NETWORKS } from '../../../src/runes/networks.ts';
import { compareMirrors, readOther } from '../../../src/verify/compareMirrors.ts';
import { VerificationError } from '../../../src/verify/findings.ts';
import { filesBelow, RecordingLog, temporaryFolder, testBuild } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { hash256 } from '../../support/memoryLedger.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, testPull } from '../../support/pull.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';

const limits = limitsWith({ listLevels: { steps: [40, 20, 4], unsettled: 2 }, startOutputs: 7 });
/** With these limits, the pull reads the outputs of the other mirror's ledger in a thread. */
const threaded = { ...limits, threadBytes: 1 };
const next = randomFor('starts');
const random = (below: number) => Math.floor(next() * below);
const CHAIN = (() => {
  const blocks = extended([], 130, random, 6, 6);
  // Adds an etching whose premine is divided among eight outputs. Most of them stay unspent.
  const shared = [messageScript([2, 1, 6, 800, 0, 0, 0, 0, 9]), ...Array.from({ length: 8 }, (_, i) => taproot(100 + i))];
  const inputs = [{ outpoint: Uint8Array.from({ length: 36 }, () => random(256)) }];
  return extended([...blocks, ...chainOf(130, [[{ inputs, outputs: shared }]], blocks.at(-1)!.hash)], 35, random, 30, 6);
})();
/**
 * LENGTH is the number of blocks of the mirror. START is the block after which pulls start, because a level of the
 * mirror's lists (src/format/levels.ts) ends there.
 */
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
    await pull(to, [donor.base], { limits: threaded });
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
      // Compares only files of single blocks. The first file of several blocks begins in the middle of a hundred,
      // unlike that of the complete pull.
      const same = Object.entries(pulledTree(to)).filter(([path]) => /^[0-9]+\/([0-9]+)-\1\.parquet$/.test(path) && path in all);
      for (const [path, hash] of same) expect([path, hash]).toEqual([path, all[path]]);
    }
  });

  it('continues with the node alone, also with a pruned node', async () => {
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

  it('stops if the chain is replaced below it, and gives advice', async () => {
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

  it('uses the newest block for which all mirrors have a digest', async () => {
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
      // The pulled files differ only in the order of the list of mirrors.
      expect({ ...pulledTree(other), 'blocks.json': '' }).toEqual({ ...pulledTree(to), 'blocks.json': '' });
    } finally {
      await host.close();
    }
  });

  it('takes no older blocks, and no mirrors that disagree or have no digest', async () => {
    node.replace(CHAIN.slice(0, LENGTH));
    const older = await failed(temporaryFolder(), [donor.base], { wanted: { from: 3, to: undefined } });
    expect(older.message).toContain('it publishes no rows');
    const lying = await otherDigest();
    try {
      const two = await failed(temporaryFolder(), [donor.base, lying.base]);
      expect(two.message).toMatch(/have different ledgers as of block 139/);
    } finally {
      await lying.close();
    }
    const files = join(temporaryFolder(), 'files');
    await testBuild(files, { inputs: [complete], lists: true, limits });
    const host = await startPlainFiles(files);
    try {
      expect((await failed(temporaryFolder(), [host.base])).message).toContain(
        'it has no digest of its ledger; mirrors have one in layout archive',
      );
    } finally {
      await host.close();
    }
  });
});

/** Serves a copy of the mirror that has a wrong digest in its manifest. */
async function otherDigest(): Promise<PlainFiles> {
  const copy = join(temporaryFolder(), 'other');
  cpSync(out, copy, { recursive: true });
  const path = join(copy, 'runes/v1/manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { ledger: { digest: string } };
  manifest.ledger.digest = 'f'.repeat(64);
  writeFileSync(path, JSON.stringify(manifest));
  return startPlainFiles(copy);
}

/** Returns the documents that a lying mirror has instead of this document. */
type Lie = (key: string, values: readonly string[]) => readonly StoredDocument[];
interface Lies {
  readonly outputs?: Lie;
  readonly etchings?: Lie;
}

/**
 * Serves a copy of the mirror with changed documents. If `isSealed` is true, the digest in its manifest is that of the
 * changed documents.
 */
async function liar({ outputs, etchings }: Lies, isSealed: boolean): Promise<PlainFiles> {
  const copy = join(temporaryFolder(), 'liar');
  cpSync(out, copy, { recursive: true });
  const archive = StoredArchive.in(copy);
  const put = (content: Uint8Array) => {
    const { name, file } = sealFile(content);
    writeFileSync(join(copy, 'archive', `${name}.bin`), file);
    return name;
  };
  const lists = archive.root.lists!;
  const changed = async (levels: readonly DocumentLevel[], lie: Lie = (key, values) => [{ key, values }]) => {
    const made: DocumentLevel[] = [];
    for (const level of levels) {
      const writer = new DocumentWriter(8 << 20, limits, put);
      for (const { key, values } of documentsOf(archive, level)) for (const document of lie(key, values)) writer.addLine(lineOf(document));
      made.push((await writer.finish(level))!);
    }
    return made;
  };
  const changedLists: ListTables = {
    ...lists,
    etchings: { ...lists.etchings!, levels: await changed(lists.etchings!.levels, etchings) },
    outputs: { ...lists.outputs!, outputs: await changed(lists.outputs!.outputs, outputs) },
  };
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

/**
 * Returns the mirror's outputs that have an address, were created up to block START, and are unspent at the tip of the
 * node.
 */
function unspentOutputs(): StoredDocument[] {
  const archive = StoredArchive.in(out);
  const levels = archive.root.lists!.outputs!.outputs;
  const newest = new Map(levels.flatMap((level) => [...documentsOf(archive, level)].map((document) => [document.key, document] as const)));
  return [...newest.values()].filter(({ values: [place = ''] }) => /^\[.*"\]$/.test(place) && JSON.parse(place)[0] <= START);
}

const edited = (one: string, edit: (values: readonly string[]) => readonly string[]): Lie => {
  return (key, values) => [{ key, values: key === one && values[0] !== '"spent"' ? edit(values) : values }];
};
/** Adds units to the first rune in a value of an output. */
const plus = (value: string, units: bigint) => value.replace(/"([0-9]+)"\]$/, (_, old) => `"${BigInt(old) + units}"]`);
const moreUnits = (units: bigint) => (values: readonly string[]) => [values[0]!, plus(values[1]!, units), ...values.slice(2)];
const owner = (address: string | null) => (values: readonly string[]) => [
  values[0]!.replace(/,[^,]*\]$/, `,${JSON.stringify(address)}]`),
  ...values.slice(1),
];
const unitsIn = (value: string) => BigInt(/"([0-9]+)"\]$/.exec(value)![1]!);
const OTHER = addressOf(Buffer.concat([Buffer.from([0x51, 32]), Buffer.alloc(32, 77)]), NETWORKS.regtest, hash256);

/**
 * Returns all lies. `found` is the first check that detects the lie: the sums of runes, the comparison with the outputs
 * of the node, or the verification of a build. The digests match the lies, and in the most careful lies the sums match
 * too.
 */
function allLies(): [name: string, lies: Lies, found: 'sums' | 'located' | 'verified'][] {
  const outputs = unspentOutputs().filter(({ values }) => values.length === 2 && unitsIn(values[1]!) > 1n);
  // Skips outputs with index 0. The key of an invented output is a real key with a 9 appended, and the index `09` would
  // be invalid.
  const pairs = outputs.flatMap((a) => outputs.flatMap((b) => (a.key < b.key && !a.key.endsWith(':0') ? [[a, b] as const] : [])));
  const runeOf = ({ values }: StoredDocument) => JSON.parse(values[1]!)[0] as string;
  const [from, to] = pairs.find(([a, b]) => runeOf(a) === runeOf(b))!;
  const units = unitsIn(from.values[1]!);
  const both =
    (first: Lie, second: Lie): Lie =>
    (key, values) =>
      first(key, values).flatMap((document) => second(document.key, document.values));
  const invented: Lie = (key, values) =>
    key === from.key && values[0] !== '"spent"'
      ? [
          { key, values: moreUnits(-1n)(values) },
          { key: `${key}9`, values: [values[0]!, values[1]!.replace(/"[0-9]+"\]$/, '"1"]')] },
        ]
      : [{ key, values }];
  const without: Lie = (key, values) => (key === from.key ? [] : [{ key, values }]);
  const isMintable = (text: string) => BigInt(JSON.parse(text).mint_terms?.amount ?? '0') > 0n;
  const mints =
    (isClever: boolean): Lie =>
    (key, values) => {
      const [text = ''] = values;
      if (!isMintable(text)) return [{ key, values }];
      const amount = BigInt(JSON.parse(text).mint_terms.amount);
      const more = text.replace(/"total_mints":"([0-9]+)"/, (_, old) => `"total_mints":"${BigInt(old) + 1n}"`);
      const burned = more.replace(/"burned":"([0-9]+)"/, (_, old) => `"burned":"${BigInt(old) + amount}"`);
      return [{ key, values: [isClever ? burned : more] }];
    };
  const name: Lie = (key, values) => [{ key, values: [values[0]!.replace(/"name":"([A-Z]+)"/, '"name":"$1X"')] }];
  return [
    ['an amount', { outputs: edited(from.key, moreUnits(5n)) }, 'sums'],
    ['units moved to another output', { outputs: both(edited(from.key, moreUnits(-1n)), edited(to.key, moreUnits(1n))) }, 'verified'],
    ['another owner', { outputs: edited(from.key, owner(OTHER)) }, 'located'],
    ['no owner', { outputs: edited(from.key, owner(null)) }, 'located'],
    ['another height', { outputs: edited(from.key, ([place = '', ...runes]) => [place.replace(/^\[\d+/, '[2'), ...runes]) }, 'located'],
    ['an output left out', { outputs: without }, 'sums'],
    ['an output left out, and its units elsewhere', { outputs: both(without, edited(to.key, moreUnits(units))) }, 'verified'],
    ['an invented output', { outputs: invented }, 'located'],
    ['mints', { etchings: mints(false) }, 'sums'],
    ['mints and burns', { etchings: mints(true) }, 'verified'],
    ['names', { etchings: name }, 'verified'],
  ];
}
const LIES = 11;

describe('a mirror that lies', () => {
  it.each(Array.from({ length: LIES }, (_, i) => i))('is detected as the documentation says, lie %i', async (i) => {
    node.replace(CHAIN.slice(0, LENGTH));
    expect(allLies()).toHaveLength(LIES);
    const [name, lies, found] = allLies()[i]!;
    const [honest, host] = [await liar(lies, false), await liar(lies, true)];
    try {
      const to = temporaryFolder();
      // With the true digest in its manifest, each lie is detected. A second, honest mirror detects it too.
      const damaged = await failed(to, [honest.base]);
      expect([name, damaged.message]).toEqual([name, expect.stringMatching(/cannot be a start: its files have the digest/)]);
      expect((await failed(to, [host.base, donor.base])).message).toContain('have different ledgers');
      if (found !== 'verified') {
        const error = await failed(to, [host.base], { check: 'all', limits: i % 2 === 0 ? limits : threaded });
        const text =
          found === 'sums' ? /lack -?[0-9]+ units of its premine, mints and burns/ : /outputs of its ledger as of block [0-9]+ differ/;
        expect([name, error.exitCode, error.message]).toEqual([name, 2, expect.stringMatching(text)]);
        if (found === 'located') expect(error.details[0]).toMatch(/^[0-9a-f]{64}:[0-9]+: the mirror has height .*; the node has /);
        // The folder has nothing from the lying mirror, so a pull can start from another mirror.
        expect(Object.keys(pulledTree(to)).filter((path) => /^[0-9]|blocks/.test(path))).toEqual([]);
        if (i === 2) {
          await pull(to);
          expect(await pulledRows(to)).toEqual(rowsAbove(CHAIN.slice(0, LENGTH), START));
        }
      } else {
        await pull(to, [host.base], { check: 'all' });
        const error = await compared(to, out).catch((caught: unknown) => caught);
        expect([name, error]).toEqual([name, expect.any(VerificationError)]);
        const { message, details } = error as VerificationError;
        // If the lie also changed rows above block START, the comparison may report these rows instead of the ledger.
        expect(`${message} ${details.join()}`).toMatch(/ledger after block 139: .* ≠ |differ in .* of the/);
      }
    } finally {
      await honest.close();
      await host.close();
    }
  });

  it.each(['99999', '.5', 'x'])('with an outpoint that no output can have is refused before it is sorted: …%s', async (end) => {
    const { key: one } = unspentOutputs().find(({ key }) => !key.endsWith(':0'))!;
    const invented: Lie = (key, values) =>
      key === one
        ? [
            { key, values },
            { key: `${key}${end}`, values },
          ]
        : [{ key, values }];
    const host = await liar({ outputs: invented }, false);
    try {
      expect((await failed(temporaryFolder(), [host.base])).message).toContain('a file of its archive has an invalid document');
    } finally {
      await host.close();
    }
  });

  it('about all owners is found in a sample', async () => {
    node.replace(CHAIN.slice(0, LENGTH));
    const host = await liar({ outputs: (key, values) => [{ key, values: values[0] === '"spent"' ? values : owner(OTHER)(values) }] }, true);
    try {
      const error = await failed(temporaryFolder(), [host.base], { limits: { ...limits, locatedOutputs: 20 } });
      expect([error.exitCode, error.details.length]).toEqual([2, 6]);
    } finally {
      await host.close();
    }
  });

  it.each([
    ['an address of another network', owner('bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq')],
    ['an amount below zero', (values: readonly string[]) => values.map((value) => value.replace(/"([0-9]+)"\]$/, '"-$1"]'))],
    ['text that is not JSON', (values: readonly string[]) => ['{', ...values.slice(1)]],
    ['a height that is no number', (values: readonly string[]) => [values[0]!.replace(/^\[[0-9]+/, '["1"'), ...values.slice(1)]],
  ])('and has %s is refused even if its digest matches', async (_, edit) => {
    node.replace(CHAIN.slice(0, LENGTH));
    const lies = { outputs: edited(unspentOutputs()[0]!.key, edit) };
    const host = await liar(lies, true).catch(() => liar(lies, false));
    try {
      const error = await failed(temporaryFolder(), [host.base], { limits: threaded });
      expect([error.exitCode, error.message]).toEqual([
        2,
        expect.stringContaining('cannot be a start: a file of its archive has an invalid document'),
      ]);
    } finally {
      await host.close();
    }
  });
});

/** Builds a pulled folder, and compares the build with another mirror. Returns the message. */
async function compared(to: string, other: string): Promise<string> {
  const built = join(to, 'dist');
  await testBuild(built, { inputs: [join(to, 'pulled')], layout: 'archive', lists: true, limits });
  const log = new RecordingLog();
  await compareMirrors([await readOther(built, log), await readOther(other, log)], log);
  return log.infos.map(({ message }) => message).join();
}

describe('the check of a start by the node', () => {
  const startOf = (to: string) => JSON.parse(readFileSync(join(to, 'pulled/blocks.json'), 'utf8')).start;
  const outputsAsked = () => node.calls.filter((call) => call.includes('getutxos')).flatMap((call) => call.match(/[0-9a-f]{64}-[0-9]+/g)!);

  it('is recorded in the list of blocks and the manifest, and compared with other mirrors', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    node.calls.length = 0;
    await pull(to, [donor.base, donor.base]);
    const { ledger } = JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8'));
    const { height, hash, digest } = ledger;
    expect(startOf(to)).toEqual({ class: 'located', height, hash, digest, donors: [donor.base, donor.base] });
    const asked = outputsAsked();
    expect(new Set(asked).size).toBe(asked.length);
    expect(asked.length).toBeGreaterThan(5);
    expect(node.calls.filter((call) => call.includes('getutxos')).every((call) => call.split('/').length <= 3 + 15)).toBe(true);
    expect(await compared(to, out)).toMatch(/ledger after block 139: .* = /);
    const { start } = JSON.parse(readFileSync(join(to, 'dist/runes/v1/manifest.json'), 'utf8'));
    expect(start).toEqual(startOf(to));
    await check(join(to, 'dist'));
    // A second pull does not repeat the check of the outputs.
    node.calls.length = 0;
    await pull(to);
    expect(outputsAsked()).toEqual([]);
    // A mirror that starts from this mirror also records the check.
    const host = await startPlainFiles(join(to, 'dist'));
    const next = temporaryFolder();
    try {
      await testPull(host.base, next);
      expect(startOf(next)).toEqual(startOf(to));
    } finally {
      await host.close();
    }
  });

  it('waits for the tip, asks again after new blocks and reorganisations, and leaves out spent outputs', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    node.calls.length = 0;
    await pull(to, [donor.base], { wanted: { from: undefined, to: START + 2 } });
    expect([startOf(to).class, outputsAsked()]).toEqual(['consistent', []]);
    const fork = extended(CHAIN.slice(0, LENGTH - 2), 9, random, 10, 9);
    let changes = 0;
    node.onCall = () => {
      if (!node.calls.at(-1)!.includes('getutxos') || changes > 2) return;
      changes += 1;
      node.replace(changes === 1 ? CHAIN.slice(0, LENGTH + 3) : changes === 2 ? fork.slice(0, LENGTH + 5) : fork);
    };
    const log = new RecordingLog();
    try {
      await pull(to, [donor.base], { confirmations: 100, check: 'all', log });
    } finally {
      node.onCall = undefined;
    }
    expect(startOf(to).class).toBe('located');
    expect(await pulledRows(to)).toEqual(rowsAbove(fork, START));
    const { figures } = log.infos.find(({ event }) => event === 'located')!;
    const outputsOf = (chain: readonly FakeBlock[]) => [...memoryOf(chain).ledger.outputs.keys()];
    const [before, after] = [outputsOf(CHAIN.slice(0, START + 1)), new Set(outputsOf(fork))];
    const spent = before.filter((outpoint) => !after.has(outpoint)).length;
    expect(figures).toMatchObject({ spent, asked: before.length - spent });
  });

  it('ends if the tip changes again and again, and continues later', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    node.onCall = () => {
      if (node.calls.at(-1)!.includes('getutxos')) node.setTip(LENGTH + Math.floor(next() * 15));
      else if (node.calls.at(-1)!.includes('chaininfo')) node.setTip(LENGTH - 1);
    };
    try {
      node.replace(CHAIN);
      node.setTip(LENGTH - 1);
      expect((await failed(to, [donor.base], { confirmations: 100 })).message).toMatch(
        /changed 5 times while the node was asked for outputs/,
      );
    } finally {
      node.onCall = undefined;
    }
    expect(startOf(to).class).toBe('consistent');
    node.setTip(CHAIN.length - 1);
    await pull(to);
    expect(startOf(to).class).toBe('located');
  });

  it('retries answers that are cut, and accepts no other bytes', async () => {
    const to = temporaryFolder();
    node.replace(CHAIN.slice(0, LENGTH));
    node.faults.push({ on: 'getutxos', cut: 40 }, { on: 'getutxos', status: 503 }, { on: 'getutxos', status: 200, body: 'x'.repeat(50) });
    await pull(to);
    expect([startOf(to).class, node.faults]).toEqual(['located', []]);
    // A node's answer for three outputs: the node has the first and the last of them.
    const coin = (height: string, script: string) => `00000000${height}2202000000000000${script}`;
    const hex = ['91000000', '07'.repeat(32), '0105', '02', coin('03000000', '0151'), coin('04010000', '025152')].join('');
    const bytes = Buffer.from(hex, 'hex');
    const coins = [{ height: 3, script: Uint8Array.of(0x51) }, undefined, { height: 260, script: Uint8Array.of(0x51, 0x52) }];
    expect(readCoins(bytes, 3)).toEqual({ tip: '07'.repeat(32), coins });
    for (let length = 0; length < bytes.length; length++)
      expect(() => readCoins(bytes.subarray(0, length), 3)).toThrow('unexpected answer');
    const others = [`${hex}00`, hex.replace('0105', '0107'), hex.replace('0105', '0205'), hex.replace('010502', '010503')];
    for (const other of others) expect(() => readCoins(Buffer.from(other, 'hex'), 3)).toThrow('unexpected answer');
    expect(() => readCoins(bytes, 9)).toThrow('unexpected answer');
  });

  it('asks for random outputs, with a new sample for each start', () => {
    const file = join(temporaryFolder(), 'outputs.txt');
    const all = Array.from({ length: 1000 }, (_, i) => ({ name: `${i}`, height: i, address: '-' }));
    const choose = () => {
      const chosen = new ChosenOutputs(file, 'sample', { locatedOutputs: 100 });
      for (const one of all) chosen.add(one);
      chosen.end();
      chosen.close();
      return readFileSync(file, 'utf8').trimEnd().split('\n');
    };
    const counts = new Array<number>(10).fill(0);
    const samples = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const lines = choose();
      expect(new Set(lines).size).toBe(100);
      samples.add([...lines].sort().join());
      for (const line of lines) counts[Math.floor(Number(line.split(' ')[0]) / 100)]! += 1;
    }
    expect(samples.size).toBe(20);
    // All samples together have 2,000 outputs, whose numbers are below 1,000. So about 200 of them have numbers from 0 to
    // 99, and so on. A random difference of 70 is almost impossible.
    for (const count of counts) expect(Math.abs(count - 200)).toBeLessThan(70);
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
    expect(Buffer.from(scriptOfAddress(address, main, hash256)!)).toEqual(script);
    expect(scriptOfAddress(address, signet, hash256)).toBeUndefined();
    expect(scriptOfAddress(address.toUpperCase(), main, hash256)).toBeUndefined();
    expect(scriptOfAddress(`${address.slice(0, -1)}x`, main, hash256)).toBeUndefined();
  }
  for (const text of ['', '1', 'bc1', 'bc1q', '0'.repeat(34), '\u{1f600}', 'x'.repeat(5000)])
    expect(scriptOfAddress(text, main, hash256)).toBeUndefined();
});
