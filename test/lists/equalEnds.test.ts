/**
 * Tests ids with the same ending, which have the same key in an archive. Builds and answers read each page only once, no matter how many of
 * these ids exist.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { findKnown } from '../../src/engine/knownTransactions.ts';
import { Archive } from '../../src/format/archiveReader.ts';
import { PartCache } from '../../src/format/partCache.ts';
import { LIMITS } from '../../src/limits.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { archivePath } from '../../src/pages/filePaths.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { inflateText } from '../../src/serve/archiveParts.ts';
import { diskFiles, MANIFEST, readArchive } from '../support/archives.ts';
import { failedBuild, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { hex, ndjson, record } from '../support/records.ts';

const [BLOCKS, TRANSACTIONS, NEW] = [40, 75, 20];
const END = '0123456789ab';
const work = temporaryFolder();
const out = join(work, 'out');

/** Returns the id of a transaction, or the hash of a block. All of them have the same ending, so they have the same key. */
const idOf = (height: number, tx: number) => hex(`${height} ${tx}`).slice(0, -END.length) + END;
const blockOf = (height: number, ids: readonly string[]) =>
  ndjson(
    ids.map((id, i) =>
      record(height, ids.length - i, {
        location: { block_hash: `0x${idOf(height, -1)}`, tx_id: `0x${id}`, output: `0x${id}` },
      }),
    ),
  );
const idsAt = (height: number) => Array.from({ length: TRANSACTIONS }, (_, tx) => idOf(height, tx));

/** Largest number of inflated members if each page is read only once. Includes pages, directories and the root. */
let most = 0;

beforeAll(async () => {
  const blocks = Array.from({ length: BLOCKS }, (_, i) => [`in/${i}.ndjson`, blockOf(i, idsAt(i))]);
  writeFiles(work, Object.fromEntries(blocks));
  await testBuild(out, { inputs: [join(work, 'in')], layout: 'archive' });
  const { blocks: stored, root } = readArchive(out);
  const members = root.ids.flatMap(({ files }) => files.flatMap((file) => file.members ?? [])).length;
  // Members of ids are read twice: for the heads, then for the pages of lists.
  most = stored.reduce((sum, { pages }) => sum + pages.length, 0) + root.segments.length + 1 + 2 * members;
  expect(most).toBeLessThan(100);
});

describe('a build', () => {
  it('finds known transactions among equal endings, and reads each page once', async () => {
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: join(work, 'scratch') });
    try {
      const known = [idOf(3, 7), idOf(39, 0)];
      const ids = [...Array.from({ length: NEW }, (_, tx) => idOf(BLOCKS, tx)), ...known, idOf(5, 1)];
      const rows = ids.map((id) => `('${id}', ${BLOCKS})`);
      const columns = { tx_id: 'VARCHAR', block_height: 'INTEGER' } as const;
      const input = {
        transactions: await store.table('transactions', columns, `SELECT * FROM (VALUES ${rows.join()}) AS t (tx_id, block_height)`),
        affected: await store.table('affected', { block_height: 'INTEGER' }, 'SELECT 5 AS block_height'),
      };
      let inflated = 0;
      const inflate = (member: Uint8Array, limit: number) => {
        inflated += 1;
        return inflateText(member, limit);
      };
      const archive = StoredArchive.in(out);
      const read = diskFiles(out).read;
      const opened = await Archive.open(archive.name, { read: (file, ...place) => read(archivePath(file), ...place), inflate });
      archive.parts = async () => opened;
      const found = await findKnown(archive, input, LIMITS, store);
      expect(found).toEqual([
        { txId: known[0], height: BLOCKS, other: 3 },
        { txId: known[1], height: BLOCKS, other: 39 },
      ]);
      expect(inflated).toBeLessThanOrEqual(most);
    } finally {
      store.close();
    }
  });

  it('adds a block of such ids like a full build, and refuses a known id', async () => {
    const next = Array.from({ length: NEW }, (_, tx) => idOf(BLOCKS, tx));
    writeFiles(work, { 'in/next.ndjson': blockOf(BLOCKS, [...next, idOf(3, 7)]) });
    expect((await failedBuild(out, { inputs: [join(work, 'in')], layout: 'archive' })).details.join()).toContain(
      `tx_id 0x${idOf(3, 7)} is in two blocks: 3 and ${BLOCKS}`.replace('0x', ''),
    );
    writeFiles(work, { 'in/next.ndjson': blockOf(BLOCKS, next) });
    await testBuild(out, { inputs: [join(work, 'in')], layout: 'archive' });
    await testBuild(join(work, 'full'), { inputs: [join(work, 'in')], layout: 'archive' });
    expect(tree(out)).toEqual(tree(join(work, 'full')));
  });
});

describe('an answer', () => {
  it.each([
    ['for an unknown id', 'f'.repeat(64).slice(0, -END.length) + END, 0],
    ['for the last of them', idOf(BLOCKS - 1, 0), 1],
  ])('%s reads each page once', async (_, id, total) => {
    const files = diskFiles(out);
    let inflated = 0;
    const counted = {
      ...files,
      inflate: (member: Uint8Array, limit: number) => {
        inflated += 1;
        return files.inflate(member, limit);
      },
    };
    const site = siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')));
    const answer = await respond(`/runes/v1/transactions/${id}/activity`, site, counted, answerFromLists, new PartCache());
    expect(answer.kind === 'window' && (JSON.parse(answer.body) as { total: number }).total).toBe(total);
    // Allows three more members for the added block, which `most` does not include.
    expect(inflated).toBeLessThanOrEqual(most + 3);
    expect(inflated).toBeGreaterThan(BLOCKS);
  });
});
