/** Tests pulls from a node: chains of raw blocks over HTTP, reorganisations, and pulled folders that someone has changed. */
import fs, { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { BuildError } from '../../../src/errors.ts';
import { discover, type InputFile } from '../../../src/input/discover.ts';
import { crossings, LIMITS } from '../../../src/limits.ts';
import { knownRunes } from '../../../src/pull/node/replayRows.ts';
import { RowFiles } from '../../../src/pull/node/rowFiles.ts';
import { WORK_FOLDER } from '../../../src/pull/pulledFiles.ts';
import { failedBuild, RecordingLog, rowsOf, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { type Call, recordSteps, type Step, withFault } from '../../support/ioFaults.ts';
import { outpointOf } from '../../support/memoryLedger.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { placeFile } from '../../support/placeFile.ts';
import { failedPull, type TestPull, testPull } from '../../support/pull.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor as random } from '../../support/seed.ts';

/** Number of blocks that a pull may replace in these tests. One test uses the default of 100. */
const CONFIRMATIONS = 12;
const CHAIN = extended([], 230, random('the chain of nodePull'));

describe('a pull from a node', () => {
  let node: FakeNode;
  /** Folder of a pull of the complete chain. Tests change copies of it. */
  const pulled = temporaryFolder();
  let to: string;
  beforeAll(async () => {
    node = await FakeNode.start(CHAIN, { network: 'regtest' });
    await pull({}, pulled);
  });
  afterAll(() => node.close());
  beforeEach(() => {
    to = temporaryFolder();
  });
  afterEach(() => {
    node.replace(CHAIN);
    node.options.network = 'regtest';
    node.onCall = undefined;
  });
  const usePulled = () => cpSync(pulled, to, { recursive: true });
  const pull = (options: TestPull = {}, folder = to) => testPull(`core:${node.url}`, folder, { confirmations: CONFIRMATIONS, ...options });
  const failed = (options: TestPull = {}) => failedPull(`core:${node.url}`, to, { confirmations: CONFIRMATIONS, ...options });
  const upTo = (last: number) => ({ wanted: { from: undefined, to: last } });
  /** Pulls these blocks to an empty folder. Returns its files. */
  const fresh = async (blocks: readonly FakeBlock[]) => {
    node.replace(blocks);
    const folder = temporaryFolder();
    await pull({}, folder);
    return pulledTree(folder);
  };

  it('writes the rows of the protocol: a file for each settled hundred and for each other block', async () => {
    const result = await pull();
    expect(result).toMatchObject({ blocks: 230, replaced: 0, heights: [{ first: 0, last: 229 }] });
    const rows = await pulledRows(to);
    expect(rows).toEqual(memoryRows(memoryOf(CHAIN)));
    expect(result.records).toBe(rows.length);
    expect(rows.length).toBeGreaterThan(500);
    const files = rangesIn(to);
    expect(files.slice(0, 2)).toEqual(['0-99', '100-199']);
    expect(files.slice(2)).toEqual(
      [...new Set(memoryOf(CHAIN).rows.map((row) => row.block_height))].filter((h) => h > 199).map((h) => `${h}-${h}`),
    );
  });

  it('writes the same bytes at any pace', async () => {
    const whole = pulledTree(pulled);
    const next = random('paces');
    for (let last = next(60); last < 229; last += 1 + next(90)) await pull({ ...upTo(last), concurrency: 1 + next(8) });
    await pull();
    expect(pulledTree(to)).toEqual(whole);
    expect((await pull()).blocks).toBe(0);
    expect(pulledTree(to)).toEqual(whole);
  });

  it.each([1, 12])('follows a reorganisation of %d blocks without a trace of the replaced ones', async (depth) => {
    const branch = extended(CHAIN.slice(0, CHAIN.length - depth), depth + 1, random(`a branch of ${depth}`));
    const expected = await fresh(branch);
    node.replace(CHAIN);
    usePulled();
    node.replace(branch);
    expect(await pull()).toMatchObject({ blocks: depth + 1, replaced: depth });
    expect(pulledTree(to)).toEqual(expected);
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(branch)));
  });

  it.each([13, 10, 0x22, 0x2c, 0xfeff, 0x1f600])('keeps a rune with the symbol U+%s, alone in its pull', async (symbol) => {
    usePulled();
    const etching = {
      inputs: [{ outpoint: outpointOf('ab'.repeat(32), 1) }],
      outputs: [messageScript([2, 1, 5, symbol, 6, 100]), taproot(1)],
    };
    node.replace([...CHAIN, ...chainOf(CHAIN.length, [[etching]], CHAIN.at(-1)?.hash)]);
    await pull();
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: temporaryFolder() });
    const rows = await rowsOf(`FROM '${join(to, 'pulled/*.runes.parquet')}' ORDER BY number DESC LIMIT 1`, store);
    store.close();
    expect(rows).toMatchObject([{ block_height: CHAIN.length, symbol: String.fromCodePoint(symbol), premine: '100' }]);
  });

  it('leaves the old folder or the new one if it ends at any step, and no garbage after the next pull', async () => {
    const branch = extended(CHAIN.slice(0, 225), 6, random('a branch after removals'));
    const expected = await fresh(branch);
    const pullWithFault = async (failing: number): Promise<Call[]> => {
      rmSync(to, { recursive: true, force: true });
      usePulled();
      return withFault([join(to, 'pulled')], failing, 'EIO', async () => void (await pull().catch(() => undefined)));
    };
    const calls = await pullWithFault(-1);
    const removals = [...calls.entries()].filter(([, call]) => /^rmSync .*\/22[5-9]-22[5-9]-.*\.parquet/.test(call)).map(([i]) => i);
    expect(removals.length).toBeGreaterThan(0);
    for (const failing of removals) {
      await pullWithFault(failing);
      await pull();
      expect(pulledTree(to)).toEqual(expected);
    }
  });

  describe('with a settled hundred whose files are not joined yet', () => {
    beforeEach(async () => {
      for (const tip of [150, 205]) {
        node.setTip(tip);
        await pull();
      }
      node.replace(CHAIN);
      expect(rangesIn(to).filter((range) => /^1..-1../.test(range)).length).toBeGreaterThan(20);
    });

    it('joins them, and removes what a killed pull has made without an index', async () => {
      writeFileSync(join(to, `pulled/100-199-${'0'.repeat(16)}.parquet`), 'PAR1PAR1PAR1');
      await pull();
      expect(pulledTree(to)).toEqual(pulledTree(pulled));
    });

    it('does not join a file that was damaged after its pull', async () => {
      const path = fileIn(to, rangesIn(to).find((range) => /^1..-1../.test(range)) ?? '');
      flip(path.slice(join(to, 'pulled/').length))(join(to, 'pulled'));
      const error = await failed();
      expect([error.exitCode, error.message]).toEqual([2, `${path} is damaged: its SHA-256 differs from the index`]);
      expect(error.details.join(' ')).toMatch(/remove .*pulled and pull again/);
      expect(rangesIn(to)).not.toContain('100-199');
    });
  });

  it('does not ask the node again if all blocks are pulled', async () => {
    usePulled();
    class ClosingLog extends RecordingLog {
      override info(...said: Parameters<RecordingLog['info']>): void {
        super.info(...said);
        if (said[0] === 'pulled') node.faults.push({ status: 500, times: 2 });
      }
    }
    try {
      expect(await pull({ log: new ClosingLog(), retries: 0 })).toMatchObject({ blocks: 0 });
      expect(node.faults).toHaveLength(1);
    } finally {
      node.faults.length = 0;
    }
  });

  it('does not call a node that lags if it is below the first block with runes', async () => {
    node.options.network = 'main';
    const log = new RecordingLog();
    expect(await pull({ log })).toMatchObject({ blocks: 0, heights: [] });
    expect(log.notices).toEqual([]);
  });

  it('drops the runes of a chain that only got shorter', async () => {
    usePulled();
    const shorter = extended(CHAIN.slice(0, 225), 1, random('a shorter branch'));
    const expected = await fresh(shorter);
    node.replace(shorter);
    await pull();
    expect(pulledTree(to)).toEqual(expected);
  });

  it('refuses a deeper reorganisation and leaves all files unchanged', async () => {
    usePulled();
    const before = pulledTree(to);
    node.replace(extended(CHAIN.slice(0, CHAIN.length - 13), 14, random('a deep branch')));
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining('replaced more than the last 12')]);
    expect(error.details.join(' ')).toContain(`remove ${join(to, 'pulled')}`);
    expect(pulledTree(to)).toEqual(before);
  });

  it('follows a chain that changes while it is read', async () => {
    const branch = extended(CHAIN.slice(0, 220), 12, random('a branch while reading'));
    node.replace(CHAIN);
    let asked = 0;
    node.onCall = () => {
      asked++;
      if (asked === 455) node.replace(branch);
    };
    await pull();
    expect(asked).toBeGreaterThan(455);
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(branch)));
    expect(pulledTree(to)).toEqual(await fresh(branch));
  });

  it('gives up on a node whose blocks do not follow each other', async () => {
    // Block 120 of another branch has a valid header, but does not follow block 119.
    const other = extended(CHAIN.slice(0, 100), 21, random('a node that lies'))[120];
    node.replace(CHAIN.map((block) => (block.height === 120 && other ? other : block)));
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/changed 5 times before block \d+ was read/)]);
  });

  it('waits for a node that lags', async () => {
    usePulled();
    const before = pulledTree(to);
    for (const length of [225, 100, 1]) {
      node.replace(CHAIN.slice(0, length));
      const log = new RecordingLog();
      expect(await pull({ log })).toMatchObject({ blocks: 0, replaced: 0 });
      expect(log.notices.join(' ')).toContain(`is behind: its last block is ${length - 1}`);
    }
    expect(pulledTree(to)).toEqual(before);
  });

  it('writes rows from the wanted block on, with the state of all blocks before', async () => {
    // The second pull reads runes that were etched below the first row from their files.
    for (const last of [160, 229]) await pull({ wanted: { from: 150, to: last } });
    const { rows } = memoryOf(CHAIN);
    expect(await pulledRows(to)).toEqual(memoryRows({ rows: rows.filter((row) => row.block_height >= 150) }));
    const etched = rows.filter(({ operation }) => operation === 'etching');
    const { runes } = JSON.parse(readFileSync(join(to, 'pulled/index.json'), 'utf8')) as { runes: { first: number; rows: number }[] };
    expect([runes[0]?.first, runes.reduce((sum, file) => sum + file.rows, 0)]).toEqual([0, etched.length]);
    // A build refuses rows of runes that it does not know.
    const { manifest } = await testBuild(join(temporaryFolder(), 'dist'), { inputs: [join(to, 'pulled')] });
    expect(manifest.heights[0]?.[0]).toBe(rows.find((row) => row.block_height >= 150)?.block_height);
    await pull();
    const error = await failed({ wanted: { from: 149, to: undefined } });
    expect([error.exitCode, error.message]).toEqual([
      2,
      `--blocks asks for block 149, but ${join(to, 'pulled')} has rows from block 150 on`,
    ]);
  });

  it('keeps only the last blocks if that is wanted', async () => {
    node.replace(CHAIN.slice(0, 150));
    await pull({ wanted: { from: { last: 110 }, to: undefined } });
    expect(rangesIn(to)).toContain('0-99');
    node.replace(CHAIN);
    await pull({ wanted: { from: { last: 110 }, to: undefined } });
    expect(await pulledRows(to)).toEqual(memoryRows({ rows: memoryOf(CHAIN).rows.filter((row) => row.block_height >= 100) }));
  });

  it('refuses a folder of another source, or of an older version, and gives advice', async () => {
    usePulled();
    rmSync(join(to, 'pulled/.state'), { recursive: true });
    const path = join(to, 'pulled/index.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"ord"', '"bitcoin-indexer"'));
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([2, `${join(to, 'pulled')} has blocks of another source`]);
    rmSync(path);
    writeFiles(to, { 'pulled/blocks.json': '{"sources":[]}', 'pulled/runes.parquet': '' });
    for (const old of [await failed(), await failedBuild(join(to, 'out'), { inputs: [to] })]) {
      expect([old.exitCode, old.message]).toEqual([2, `${join(to, 'pulled')} was written by an older version of this program`]);
      expect(old.details).toEqual([`Remove ${join(to, 'pulled')} and pull again.`]);
    }
  });

  it('writes an index that builds read: they name a file that is gone, and ignore files that it does not name', async () => {
    usePulled();
    const before = await testBuild(join(to, 'out'), { inputs: [to] });
    const path = fileIn(to, '100-199');
    const later = temporaryFolder();
    node.replace(extended(CHAIN.slice(0, 225), 6, random('a branch that left garbage')));
    await pull({}, later);
    const garbage = readdirSync(join(later, 'pulled')).filter((name) => name.endsWith('.parquet') && !existsSync(join(to, 'pulled', name)));
    expect(garbage.length).toBeGreaterThan(0);
    for (const name of garbage) cpSync(join(later, 'pulled', name), join(to, 'pulled', name));
    for (const [i, input] of ['pulled', 'pulled/*'].entries())
      expect((await testBuild(join(to, `again-${i}`), { inputs: [join(to, input)] })).manifest).toEqual(before.manifest);
    rmSync(path);
    const error = await failedBuild(join(to, 'out'), { inputs: [join(to, 'pulled')] });
    expect([error.exitCode, error.message]).toEqual([2, `${path} is missing, but the index of its folder names it`]);
  });

  it('is listed again by a build, if a pull replaces its index meanwhile', async () => {
    const [folder, later] = [join(to, 'pulled'), temporaryFolder()];
    usePulled();
    node.replace(extended(CHAIN.slice(0, 225), 6, random('a branch while a build lists')));
    await pull();
    cpSync(folder, later, { recursive: true });
    const names = (files: readonly InputFile[]) => files.map(({ path }) => basename(path));
    const expected = names(await discover([later]));
    rmSync(folder, { recursive: true });
    usePulled();
    const { readdirSync: read } = fs;
    Object.assign(fs, {
      readdirSync: (...args: Parameters<typeof read>) => {
        const found = read(...args);
        if (String(args[0]) === folder) cpSync(later, folder, { recursive: true });
        return found;
      },
    });
    syncBuiltinESMExports();
    try {
      expect(names(await discover([folder]))).toEqual(expected);
    } finally {
      Object.assign(fs, { readdirSync: read });
      syncBuiltinESMExports();
    }
  });

  it('refuses a node that has pruned a needed block, before it reads any', async () => {
    node.options.prunedBelow = 3;
    const error = await failed();
    node.options.prunedBelow = undefined;
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/has pruned block 0, which is needed/)]);
  });

  it('refuses a node of another network', async () => {
    usePulled();
    node.options.network = 'signet';
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining('is on the network signet, but')]);
  });

  it.each([
    ['a file of rows is gone', (folder: string) => rmSync(fileIn(dirname(folder), '100-199')), /100-199-.*parquet is missing/],
    [
      'a file of rows is cut off',
      (folder: string) => writeFileSync(fileIn(dirname(folder), '100-199'), 'PAR1'),
      /100-199-.*parquet is damaged: its size differs/,
    ],
    [
      'a file of a block that is not settled is damaged',
      (folder: string) => flip(basename(fileIn(dirname(folder), rangesIn(dirname(folder)).at(-1) ?? '')))(folder),
      /2..-2.*parquet is damaged: its SHA-256 differs/,
    ],
    ['the runes are damaged', (folder: string) => flip(runesIn(folder))(folder), /runes.parquet is damaged: its SHA-256 differs/],
    ['the runes are gone', (folder: string) => rmSync(join(folder, runesIn(folder))), /runes.parquet is missing/],
    ['the index is gone', (folder: string) => rmSync(join(folder, 'index.json')), /has no index of its rows/],
    ['the index is damaged', (folder: string) => writeFileSync(join(folder, 'index.json'), '{"version":1'), /index.json is damaged/],
  ])('stops if %s, and gives advice for the repair', async (_, damage, message) => {
    usePulled();
    damage(join(to, 'pulled'));
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(message)]);
    expect(error.details.join(' ')).toMatch(/remove .*pulled.* pull again|remove .*pulled.*reads all blocks again/);
  });

  it('refuses a chain of mainnet that does not begin as mainnet does', async () => {
    node.options.network = 'main';
    node.replace(chainOf(840_000, [[], []]));
    const error = await failed({ isInvented: false });
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(
        /^block 840000 of Bitcoin Core .* is of another chain: its hash should be 0{19}320283a032748cef8227873ff4872689bf23/,
      ),
    ]);
    expect(pulledTree(to)).toEqual({});
    await pull();
  });

  it('reports that a node lost blocks while it was read', async () => {
    const log = new RecordingLog();
    node.replace(CHAIN.slice(0, 151));
    await pull();
    node.replace(CHAIN);
    node.onCall = () => {
      if (node.calls.at(-1)?.includes(CHAIN[200]?.hash ?? '')) node.replace(CHAIN.slice(0, 120));
    };
    await pull({ log });
    expect(log.notices.join(' ')).toMatch(/is behind: its last block is 119, and block 150 was pulled before/);
  });

  it('replays more unsettled blocks than the ledger may keep in memory', async () => {
    const options = { confirmations: 200, limits: { ...LIMITS, changesBytes: 1 } };
    crossings.clear();
    const chain = CHAIN.slice(0, 70);
    node.replace(chain);
    expect((await pull({ ...upTo(59), ...options })).blocks).toBe(60);
    expect(JSON.parse(readFileSync(join(to, 'pulled/.state/state.json'), 'utf8'))).toMatchObject({ state: { base: -1 } });
    expect((await pull(options)).blocks).toBe(10);
    expect(crossings.has('changesBytes')).toBe(true);
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    const branch = extended(chain.slice(0, 20), 60, random('a branch of replayed blocks'));
    node.replace(branch);
    expect((await pull(options)).replaced).toBe(50);
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(branch)));
  });

  it.each([
    [211, 99],
    [212, 199],
  ])('settles complete hundreds: with the tip %d, blocks up to %d', async (tip, base) => {
    const limits = { ...LIMITS, changesBytes: 1 };
    node.setTip(tip);
    await pull({ limits });
    expect(JSON.parse(readFileSync(join(to, 'pulled/.state/state.json'), 'utf8'))).toMatchObject({ state: { base } });
    // The branch begins within a hundred whose files are joined. The pull goes back to the block before this hundred.
    const branch = extended(CHAIN.slice(0, base + 60), 60, random('a branch in a hundred'));
    node.replace(branch);
    await pull({ limits, confirmations: 150 });
    expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(branch)));
  });

  it('syncs each file before the rename that makes it valid, then its folder, and settles last', async () => {
    node.replace(CHAIN.slice(0, 150));
    await pull();
    const folder = join(to, 'pulled');
    // The three chains cause new blocks, a reorganisation, and the joining of a hundred, which also settles.
    const pulls: Step[][] = [];
    for (const chain of [CHAIN.slice(0, 160), extended(CHAIN.slice(0, 155), 20, random('a branch on a disk')), CHAIN]) {
      node.replace(chain);
      pulls.push(await recordSteps(folder, () => pull({ confirmations: 20 })));
    }
    const steps = pulls.flat();
    // Blocks settle only after their rows and the index are in place.
    const isState = ({ does, path, to: final = path }: Step) => does !== 'sync' && final.includes('/.state/');
    const isIndex = ({ does, to: path = '' }: Step) => does === 'rename' && path.endsWith('index.json');
    const settling = pulls.find((some) => some.some(isState)) ?? [];
    expect(settling.findIndex(isState)).toBeGreaterThan(settling.map(isIndex).lastIndexOf(true));
    expect(settling.findIndex(isIndex)).toBeGreaterThan(-1);
    const indexes = (test: (step: Step) => boolean) => [...steps.keys()].filter((i) => test(steps[i] as Step));
    const lastBefore = (i: number, test: (step: Step) => boolean) =>
      indexes(test)
        .filter((other) => other < i)
        .at(-1) ?? -1;
    const firstAfter = (i: number, test: (step: Step) => boolean) => indexes(test).find((other) => other > i) ?? steps.length;
    const renames = indexes(({ does, to: path = '' }) => does === 'rename' && !path.includes('/.work/'));
    const renamed = new Set(renames.map((i) => steps[i]?.to?.slice(folder.length + 1).replace(/[0-9]+-[0-9]+-[0-9a-f]+/g, 'A-B-C')));
    expect([...renamed].sort()).toEqual(['.state/state.json', 'A-B-C.parquet', 'A-B-C.runes.parquet', 'index.json']);
    for (const i of renames) {
      const { path, to: final = '' } = steps[i] as Step;
      const synced = lastBefore(i, (step) => step.does === 'sync' && step.path === path);
      expect([path, synced > lastBefore(i, (step) => step.does === 'write' && step.path === path), synced >= 0]).toEqual([
        path,
        true,
        true,
      ]);
      // Before other data relies on a renamed file, its folder must be synced. Files count by the index, and are removed because the index
      // no longer names them.
      const folderSynced = firstAfter(i, (step) => step.does === 'sync' && step.path === dirname(final));
      const relied = firstAfter(i, (step) =>
        final.endsWith('.json')
          ? step.does === 'remove' && /(?:parquet|sorted)$/.test(step.path) && !step.path.includes('.work')
          : step.does === 'rename' && step.to?.endsWith('index.json') === true,
      );
      expect([final, folderSynced < steps.length, folderSynced < relied || relied === steps.length]).toEqual([final, true, true]);
    }
    const sorted = indexes(({ does, path }) => does === 'write' && path.endsWith('.sorted'));
    expect(sorted.length).toBeGreaterThan(0);
    for (const i of sorted) {
      const synced = firstAfter(i, ({ does, path }) => does === 'sync' && path === steps[i]?.path);
      const folderSynced = firstAfter(synced, ({ does, path }) => does === 'sync' && path === join(folder, '.state'));
      expect([i, folderSynced < firstAfter(i, ({ to: path }) => path?.endsWith('state.json') === true)]).toEqual([i, true]);
    }
  });

  it('leaves no temporary file', async () => {
    usePulled();
    expect(
      readdirSync(join(to, 'pulled'))
        .filter((name) => !name.endsWith('.parquet'))
        .sort(),
    ).toEqual(['.state', 'index.json']);
  });
});

describe('without enough memory', () => {
  const folder = temporaryFolder();
  let store: Store;
  beforeAll(async () => {
    mkdirSync(join(folder, WORK_FOLDER));
    store = await Store.open({ memoryLimit: '1MB', threads: 1, scratch: temporaryFolder() });
  });
  afterAll(() => store.close());
  const errorOf = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );
  const expected = expect.objectContaining({ name: BuildError.name, message: expect.stringMatching(/^DuckDB needs more memory/) });

  it('the table of runes does not count as damaged', async () => {
    const large = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: temporaryFolder() });
    const columns = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((term) => `'1' AS terms_${term}`);
    await large.run(
      `COPY (SELECT '1:' || i AS id, i AS number, 'A' AS name, 1 AS block_height, ${columns.join(', ')} FROM range(100000) AS numbers(i))
       TO '${join(folder, WORK_FOLDER, 'runes.parquet')}' (FORMAT parquet)`,
    );
    large.close();
    const content = { rows: 100_000, digest: '0'.repeat(64) };
    const file = await placeFile(folder, join(folder, WORK_FOLDER, 'runes.parquet'), 'runes', { first: 1, last: 1 }, content);
    expect(await errorOf(knownRunes(folder, { runes: [file] }, store).next())).toEqual(expected);
  });

  it('the folder does not count as read-only', async () => {
    const files = new RowFiles(folder, store);
    for (let i = 0; i < 1000; i++) {
      const at = { block_hash: 'ab'.repeat(32), block_height: 1, tx_index: i, event_index: 0, tx_id: 'cd'.repeat(32), timestamp: 1 };
      files.addRow({
        ...at,
        rune_id: '1:1',
        output: null,
        address: null,
        receiver_address: null,
        amount: null,
        operation: 'etching',
        spent: null,
      });
    }
    await files.endFile({ first: 1, last: 1 }, 1);
    expect(await errorOf(files.finished())).toEqual(expected);
    await files.discard();
  });
});

/** Returns the ranges of heights of the files of rows in an input folder, ascending. */
const rangesIn = (to: string): string[] =>
  readdirSync(join(to, 'pulled'))
    .flatMap((name) => /^([0-9]+-[0-9]+)-[0-9a-f]{16}\.parquet$/.exec(name)?.[1] ?? [])
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));

/** Returns the path of the file of rows with this range. */
const fileIn = (to: string, range: string): string =>
  join(to, 'pulled', readdirSync(join(to, 'pulled')).find((name) => name.startsWith(`${range}-`) && !name.includes('runes')) ?? '-');

/** Returns the name of a file of runes in the folder `pulled`. */
const runesIn = (folder: string): string => readdirSync(folder).find((name) => name.includes('runes')) ?? '-';

/** Changes a byte in the middle of a file. */
function flip(name: string) {
  return (folder: string) => {
    const bytes = readFileSync(join(folder, name));
    bytes[Math.floor(bytes.length / 2)]! ^= 1;
    writeFileSync(join(folder, name), bytes);
  };
}
