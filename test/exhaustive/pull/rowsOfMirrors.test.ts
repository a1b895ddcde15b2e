/**
 * Tests pulls of published rows from another mirror. A pull gives the same folder and the same mirror again, and detects mirrors that lie.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RowsIndex, rowsIndex } from '../../../src/contract/rowsSchemas.ts';
import { Store } from '../../../src/duckdb/store.ts';
import type { LIMITS } from '../../../src/limits.ts';
import { MANIFEST_PATH, rowFilePath, rowsIndexPath } from '../../../src/pages/filePaths.ts';
import { contentsOf, NODE_LEDGER, RUNES } from '../../../src/rows/rowsForm.ts';
import { CONFORMANCE_INPUTS, RecordingLog, rowsOf, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { memoryRows, pullChain, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, testPull } from '../../support/pull.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const random = integersFor('pulled rows');
const STEPS = Number(env['FC_RUNS'] ?? 2);

let work: string;
let host: PlainFiles;
let base: string;
beforeEach(async () => {
  work = temporaryFolder();
  host = await startPlainFiles(join(work, 'dist'));
  base = host.base;
});
afterEach(() => host.close());

const donorOptions = { parquet: true, layout: 'archive', lists: true } as const;
/** A chain and the folder of a pull of it from a node, and of a mirror, which tests change copies of. */
const LONG = extended([], 116, random, 3);
const long = temporaryFolder();
beforeAll(() => mirror(LONG, long));
const copyLong = () => {
  for (const name of ['node', 'dist']) cpSync(join(long, name), join(work, name), { recursive: true });
};
const to = () => join(work, 'input');
const fetchedRows = () => host.asked.filter((path) => path.startsWith('rows/') && path.endsWith('.parquet'));

/** Builds the mirror `dist` from a node with this chain. */
async function mirror(chain: Parameters<typeof memoryOf>[0], to = work): Promise<void> {
  // The folder may have blocks of another chain.
  rmSync(join(to, 'node'), { recursive: true, force: true });
  await pullChain(chain, join(to, 'node'), { confirmations: 12 });
  await testBuild(join(to, 'dist'), { inputs: [join(to, 'node')], ...donorOptions });
}

const indexIn = (name: string) =>
  readdirSync(join(work, name, 'rows')).flatMap((file) =>
    file.startsWith('index-') ? [JSON.parse(readFileSync(join(work, name, 'rows', file), 'utf8'))] : [],
  );

describe('a pull of rows', () => {
  it('leaves the same folder as a pull from a node, from which a build makes the same mirror, and follows its source', async () => {
    let chain = LONG;
    copyLong();
    // In later steps, blocks 100 to 199 settle, and a reorganisation replaces some of them.
    for (const [depth, more, replaced] of [
      [0, 0, 0],
      // A reorganisation of a few blocks may replace only blocks without rows, so `replaced` may be 0.
      [3, 5, 0],
      [12, 110, 12],
    ] as const) {
      chain = extended(chain.slice(0, chain.length - depth), more, random, 3);
      if (more > 0) await mirror(chain);
      host.asked.length = 0;
      const log = new RecordingLog();
      const result = await testPull(base, to(), { log, confirmations: Math.max(6, depth) });
      expect([result.replaced, log.notices]).toEqual([expect.any(Number), []]);
      if (replaced > 0) expect(result.replaced).toBeGreaterThan(0);
      expect(await pulledRows(to())).toEqual(memoryRows(memoryOf(chain)));
      // The pull has requested no page, and no file of rows twice.
      expect(host.asked.filter((path) => /\/blocks\/|\/archive\//.test(path))).toEqual([]);
      expect(new Set(fetchedRows()).size).toBe(fetchedRows().length);
      host.asked.length = 0;
      expect(await testPull(base, to())).toMatchObject({ blocks: 0 });
      expect(fetchedRows().filter((path) => !path.includes('runes'))).toEqual([]);
    }
    expect(Object.keys(pulledTree(to()))).toContainEqual(expect.stringMatching(/^100-199-[0-9a-f]{16}\.parquet$/));
    const again = await testBuild(join(work, 'again'), { inputs: [to()], ...donorOptions });
    expect(indexIn('again')).toEqual(indexIn('dist'));
    expect(tree(join(work, 'again'))).toEqual(tree(join(work, 'dist')));
    expect(again.manifest.lists?.outputs).toBeDefined();
    await check(join(work, 'again'));
  });

  it(`follows its source through ${STEPS} steps of a random history, with builds of the same bytes`, async () => {
    let chain = extended([], 150 + random(100), random, 3);
    for (let step = 0; step < STEPS; step += 1) {
      const depth = random(3) === 0 ? 0 : random(40);
      chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(random(2) === 0 ? 3 : 120), random, 3);
      await mirror(chain);
      await testPull(base, to(), { confirmations: 60 });
      expect(await pulledRows(to())).toEqual(memoryRows(memoryOf(chain)));
      await testBuild(join(work, 'again'), { inputs: [to()], ...donorOptions });
      expect(tree(join(work, 'again'))).toEqual(tree(join(work, 'dist')));
    }
    await check(join(work, 'again'));
    const fresh = temporaryFolder();
    await testPull(base, fresh, { confirmations: 60 });
    expect(pulledTree(to())).toEqual(pulledTree(fresh));
  }, 600_000);

  it('can take part of a mirror, in whole files, without a gap', async () => {
    const chain = LONG;
    copyLong();
    const first = () =>
      Math.min(
        ...Object.keys(pulledTree(to()))
          .filter((path) => /^[0-9]+-[0-9]+-[0-9a-f]+\.parquet$/.test(path))
          .map((path) => Number.parseInt(path, 10)),
      );
    await testPull(base, to(), { wanted: { from: 103, to: undefined } });
    const rows = memoryRows(memoryOf(chain)).filter((row) => !/"block_height":(?:[1-9]?[0-9]|10[0-2])\b/.test(row));
    expect(await pulledRows(to())).toEqual(rows);
    await testPull(base, to(), { wanted: { from: 20, to: undefined } });
    expect(first()).toBe(0);
    expect(await pulledRows(to())).toEqual(memoryRows(memoryOf(chain)));
    await testPull(base, to(), { wanted: { from: { last: 5 }, to: undefined } });
    expect(first()).toBeGreaterThanOrEqual(111);
    const { manifest } = await testBuild(join(work, 'again'), { inputs: [to()], ...donorOptions, full: true });
    expect(manifest.sources).toEqual([{ rules: 'ord', blocks: [[111, 115]] }]);
  });

  it('refuses another chain below the settled blocks, changes nothing, and says what to do', async () => {
    copyLong();
    await testPull(base, to());
    const before = tree(to());
    await mirror(extended(LONG.slice(0, 97), 30, random, 3));
    const error = await failedPull(base, to());
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/^block [0-9]+ differs .* replaces only the last 6$/)]);
    expect(JSON.parse(readFileSync(join(to(), 'pulled/index.json'), 'utf8')).tip.height).toBe(115);
    expect(Object.keys(before).filter((path) => !(path in tree(to())))).toEqual([]);
    expect((await testPull(base, to(), { confirmations: 40 })).replaced).toBeGreaterThan(0);
  });

  it('keeps what it has of a mirror that lags', async () => {
    copyLong();
    await testPull(base, to());
    const before = tree(to());
    await mirror(LONG.slice(0, 113));
    const log = new RecordingLog();
    await testPull(base, to(), { log });
    expect(log.notices).toEqual([expect.stringMatching(/is behind: its last block is 112, and block 115 was pulled before/)]);
    expect(Object.keys(before).filter((path) => !(path in tree(to())))).toEqual([]);
  });

  it('begins with the first block, even if that block and the next ones have no records', async () => {
    await mirror(extended(chainOf(0, [[], [], []]), 12, random, 3));
    await testPull(base, to());
    const { manifest } = await testBuild(join(work, 'again'), { inputs: [to()], ...donorOptions, full: true });
    expect(manifest.sources).toEqual([{ rules: 'ord', blocks: [[0, 14]] }]);
    expect(tree(join(work, 'again'))).toEqual(tree(join(work, 'dist')));
  });

  it('from a mirror of a database has no spent outputs, and gives the same mirror', async () => {
    await testBuild(join(work, 'dist'), { inputs: CONFORMANCE_INPUTS, parquet: true });
    await testPull(base, to());
    const again = await testBuild(join(work, 'again'), { inputs: [to()], parquet: true });
    const { sources: _, tip: __, rows: ___, ...manifest } = JSON.parse(readFileSync(join(work, 'dist', MANIFEST_PATH), 'utf8'));
    expect(again.manifest).toMatchObject(manifest);
    expect(again.manifest.lists?.outputs).toBeUndefined();
  });

  it('continues after the mirror was replaced in the middle of the pull', async () => {
    host.folder = join(long, 'dist');
    const longer = extended(LONG.slice(0, 112), 6, random, 3);
    await mirror(longer);
    host.intercept = (path) => {
      if (path.includes('rows/0-99')) host.folder = join(work, 'dist');
      return false;
    };
    await testPull(base, to(), { concurrency: 1 });
    expect(await pulledRows(to())).toEqual(memoryRows(memoryOf(longer)));
  });
});

describe('a mirror that lies', () => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open({ memoryLimit: '3GB', threads: 1, scratch: temporaryFolder() });
  });
  afterAll(() => store.close());
  beforeEach(copyLong);

  const dist = () => join(work, 'dist');
  const manifestOf = () => JSON.parse(readFileSync(join(dist(), MANIFEST_PATH), 'utf8')) as { rows: { index: string } };
  const indexOf = () => rowsIndex.parse(JSON.parse(readFileSync(join(dist(), manifestOf().rows.index), 'utf8')));
  const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
  /** Publishes another list of files with the right digest in the manifest, as a skilled liar would. */
  const publish = (index: unknown) => {
    const content = JSON.stringify(index);
    const digest = sha256(content);
    const path = rowsIndexPath(digest);
    writeFileSync(join(dist(), path), content);
    writeFileSync(join(dist(), MANIFEST_PATH), JSON.stringify({ ...manifestOf(), rows: { index: path, sha256: digest } }));
  };
  const withFile = (change: object) => {
    const index = indexOf();
    publish({ ...index, files: index.files.map((file, i) => (i === 0 ? { ...file, ...change } : file)) });
  };
  /** Rewrites the first file of rows, or the file of runes, and publishes a list with the right digests. */
  const rewrite = async (select: (file: string) => string, isRunes = false) => {
    const index = indexOf();
    const { first, last, sha256: name } = index.files[0]!;
    const runes = index.runes[0]!;
    const path = join(dist(), isRunes ? rowFilePath(runes.first, runes.last, runes.sha256, true) : rowFilePath(first, last, name));
    const made = join(work, 'made.parquet');
    await store.run(`COPY (${select(`'${path}'`)}) TO '${made}' (FORMAT parquet, COMPRESSION zstd)`);
    const bytes = readFileSync(made);
    const unknown = { rows: index.files[0]?.rows ?? 0, digest: '0'.repeat(64) };
    const [{ rows, digest } = unknown] = await contentsOf([made], isRunes ? RUNES : NODE_LEDGER, store).catch(() => []);
    const facts = { rows, digest, bytes: bytes.length, sha256: sha256(bytes) };
    const at = isRunes ? rowFilePath(runes.first, runes.last, facts.sha256, true) : rowFilePath(first, last, facts.sha256);
    writeFileSync(join(dist(), at), bytes);
    if (isRunes) publish({ ...index, runes: [{ ...runes, ...facts }, ...index.runes.slice(1)] });
    else withFile(facts);
  };
  /** Changes one column of the first `receive` row. */
  const other = (column: string, value: string) => (file: string) =>
    `SELECT * REPLACE ((CASE WHEN (block_height, tx_index, event_index) = (SELECT (block_height, tx_index, event_index) FROM ${file}
       WHERE operation = 'receive' AND amount <> '0' LIMIT 1) THEN ${value} ELSE "${column}" END) AS "${column}") FROM ${file}`;

  it.each<[string, () => void | Promise<void>, RegExp]>([
    [
      'another amount',
      () => rewrite(other('amount', `CASE WHEN amount = '1' THEN '2' ELSE '1' END`)),
      /are refused: block [0-9]+ does not conserve rune/,
    ],
    ['another order', () => rewrite((file) => `FROM ${file} ORDER BY block_height, tx_index, event_index`), /not sorted/],
    ['another type', () => rewrite((file) => `SELECT * REPLACE (block_height::DOUBLE AS block_height) FROM ${file}`), /unexpected columns/],
    ['nested cells', () => rewrite((file) => `SELECT * REPLACE ([amount] AS amount) FROM ${file}`), /unexpected columns/],
    ['a column more', () => rewrite((file) => `SELECT *, 1 AS mine FROM ${file}`), /unexpected columns/],
    ['a column too few', () => rewrite((file) => `SELECT * EXCLUDE (spent) FROM ${file}`), /unexpected columns/],
    ['cells of megabytes', () => rewrite(other('address', `repeat('x', 30000000)`)), /bytes after unpacking|cells in the column address/],
    [
      'a file that unpacks to gigabytes',
      () => rewrite((file) => `SELECT * REPLACE (tx_id || event_index || repeat('a', 900000) AS spent) FROM ${file} LIMIT 500`),
      // Some cells are in the statistics of the file's footer too. Reading them may need more memory than the process has.
      /bytes after unpacking|needs more memory/,
    ],
    ['other numbers of rows', () => withFile({ rows: 7 }), /it has [0-9]+ rows, but the list says 7/],
    ['another size', () => withFile({ bytes: 5 }), /or more; the largest valid answer has 5;/],
    ['a file that is missing', () => withFile({ sha256: '2'.repeat(64) }), /the mirror answered with status 404/],
    [
      'a file of other bytes',
      () => {
        const { first, last, sha256: name, bytes } = indexOf().files[0]!;
        writeFileSync(join(dist(), rowFilePath(first, last, name)), Buffer.alloc(bytes));
      },
      /is damaged on the mirror/,
    ],
    [
      'a file that is not Parquet',
      () => {
        const { first, last } = indexOf().files[0]!;
        const text = Buffer.from('PAR1 and not more PAR1');
        writeFileSync(join(dist(), rowFilePath(first, last, sha256(text))), text);
        withFile({ bytes: text.length, sha256: sha256(text) });
      },
      /its footer cannot have [0-9]+ bytes/,
    ],
    [
      'a list that is none',
      () => {
        const path = join(dist(), manifestOf().rows.index);
        writeFileSync(path, readFileSync(path).fill(32, 5, 20));
      },
      /with other content than its manifest says/,
    ],
  ])('about %s is caught, and its rows do not reach the folder', async (_, lie, expected) => {
    await lie();
    const error = await failedPull(base, to(), { retries: 0 });
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(expected)]);
    expect(existsSync(join(to(), 'pulled/index.json'))).toBe(false);
  });

  it.each<[string, (index: RowsIndex) => unknown, RegExp]>([
    [
      'heights above the tip',
      (index) => ({ ...index, files: [...index.files, { ...index.files[0], first: 9000, last: 9099 }] }),
      /blocks 9000..9099, which is not a range/,
    ],
    ['heights twice', (index) => ({ ...index, files: [...index.files, ...index.files] }), /blocks above 1[01][0-9]/],
    ['a file of too many heights', (index) => ({ ...index, files: [{ ...index.files[0], last: 105 }] }), /blocks 0..105/],
    [
      'a file of heights of two hundreds',
      (index) => ({ ...index, files: [{ ...index.files[0], first: 50, last: 105 }] }),
      /blocks 50..105, which is not a range within/,
    ],
    ['a file that ends before it begins', (index) => ({ ...index, files: [{ ...index.files[0], first: 50, last: 40 }] }), /blocks 50..40/],
    [
      'more bytes than rows have',
      (index) => ({ ...index, files: [{ ...index.files[0], bytes: 2e9 }] }),
      /with 2000000000 bytes, too many for/,
    ],
    ['more rows than blocks have', (index) => ({ ...index, files: [{ ...index.files[0], rows: 1e9 }] }), /1000000000 rows, more than/],
    ['more runes than there are', (index) => ({ ...index, runes: [{ ...index.runes[0], rows: 1e9 }] }), /runes with 1000000000 rows/],
    ['a path', (index) => ({ ...index, files: [{ ...index.files[0], file: '../../x' }] }), /is not a list of rows/],
    [
      'a path as a digest',
      (index) => ({ ...index, files: [{ ...index.files[0], sha256: '../../../../etc/passwd' }] }),
      /is not a list of rows/,
    ],
    ['a path as a height', (index) => ({ ...index, files: [{ ...index.files[0], first: '../0' }] }), /is not a list of rows/],
    ['a height that is no integer', (index) => ({ ...index, files: [{ ...index.files[0], first: 0.5 }] }), /is not a list of rows/],
    ['an unknown network', (index) => ({ ...index, network: 'moon' }), /is not a list of rows/],
    ['nothing else', () => ({ files: [] }), /is not a list of rows/],
  ])('with a list of %s is refused', async (_, change, expected) => {
    publish(change(indexOf()));
    const error = await failedPull(base, to(), { retries: 0 });
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(expected)]);
    expect(error.details.join()).toContain('a mirror to be trusted');
    expect(readdirSync(work).sort()).toEqual(['dist', 'input', 'node']);
  });

  it.each<[string, (tip: { height: number }) => object, (index: RowsIndex) => object, RegExp]>([
    ['of the manifest only', (tip) => ({ ...tip, height: 9_999_999 }), ({ tip }) => ({ tip }), /but the manifest at block 9999999/],
    ['that the list lacks', (tip) => tip, () => ({ tip: undefined }), /ends at block undefined/],
    ['far above the last file', (tip) => ({ ...tip, height: 200_000 }), (_) => ({}), /ends 1998[0-9]{2} blocks above its last file/],
    [
      'far above the first file',
      (tip) => ({ ...tip, height: 9_999_999 }),
      ({ files }) => ({ files: [...files, { ...files[0], first: 9_999_990, last: 9_999_990 }] }),
      /has no file for 9999[0-9]{3} of its blocks/,
    ],
  ])('with a tip %s is refused before it makes thousands of empty files', async (_, tipOf, change, expected) => {
    const index = indexOf();
    const tip = tipOf(index.tip as { height: number });
    publish({ ...index, tip, ...change(index) });
    writeFileSync(join(dist(), MANIFEST_PATH), JSON.stringify({ ...manifestOf(), tip }));
    const error = await failedPull(base, to(), { retries: 0 });
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(expected)]);
    expect(existsSync(join(to(), 'pulled/index.json'))).toBe(false);
  });

  it('about sizes, so that reading takes too long, ends only the process that reads', async () => {
    const error = await failedPull(base, to(), { retries: 0, limits: limitsWith({ rowsReadMs: 1 }) });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^the (?:rows|runes) of blocks .* crashed the process that read them, or took more than .*; tried 1 times$/),
    ]);
  });

  it.each<[string, Partial<typeof LIMITS>, [number, RegExp]]>([
    [
      'more bytes than rows may have',
      { rowBytes: 1, spentBytes: 1 },
      [3, /are refused: it has [0-9]+ bytes after unpacking, too many for/],
    ],
    ['more spent outputs than blocks may have', { spentBytes: 1 }, [3, /are refused: it has [0-9]+ bytes of spent outputs/]],
  ])('with %s is refused', async (_, changes, expected) => {
    const repeated = "repeat(spent || ',', 2000 // strlen(spent)) || spent";
    await rewrite((file) => `SELECT * REPLACE (${repeated} AS spent) FROM ${file}`);
    const error = await failedPull(base, to(), { retries: 0, limits: limitsWith(changes) });
    expect([error.exitCode, error.message]).toEqual([expected[0], expect.stringMatching(expected[1])]);
  });

  it('about files that were pulled before changes nothing, so that the folder does not look damaged', async () => {
    await testPull(base, to());
    const index = () => readFileSync(join(to(), 'pulled/index.json'), 'utf8');
    const before = index();
    const lies = (files: ReturnType<typeof indexOf>['files']) =>
      files.map((file) => ({ ...file, bytes: file.bytes + 1, rows: file.rows + 1, digest: '0'.repeat(64) }));
    publish({ ...indexOf(), files: lies(indexOf().files), runes: lies(indexOf().runes) });
    expect(await testPull(base, to())).toMatchObject({ blocks: 0, replaced: 0 });
    expect(index()).toBe(before);
  });

  it('about spent outputs is believed, because nothing in the rows contradicts it', async () => {
    await rewrite((file) => `SELECT * REPLACE (repeat('7', 64) || substr(spent, 65) AS spent) FROM ${file}`);
    await testPull(base, to());
    const rows = await rowsOf(`SELECT spent FROM '${to()}/pulled/0-99-????????????????.parquet' WHERE spent IS NOT NULL`, store);
    expect(rows.length).toBeGreaterThan(0);
  });
});
