/**
 * Tests that records in any order become batches of complete blocks in served order, with ranges and batches of any size
 * (src/engine/render/renderBatches.ts).
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { literal, Store } from '../../src/duckdb/store.ts';
import type { Table } from '../../src/duckdb/table.ts';
import { sliceRecords } from '../../src/engine/render/recordBytes.ts';
import { renderBatches } from '../../src/engine/render/renderBatches.ts';
import { type Batch, type ExpectedBlock, TX_ID_LENGTH } from '../../src/engine/render/servedOrder.ts';
import { RECORDS } from '../../src/input/canonicalRecordSql.ts';
import { OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import { temporaryFolder } from '../support/build.ts';
import { hex } from '../support/records.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '500MB', threads: 2, scratch: temporaryFolder() });
});
afterAll(() => store.close());

/** Returns the records of some blocks in served order, each with a different amount. */
function recordsOf(blocks: readonly (readonly number[])[]) {
  return blocks.flatMap((txs, i) =>
    txs
      .flatMap((count, txIndex) => Array.from({ length: count }, (_, ord) => ({ txIndex, ord })))
      .sort((a, b) => b.txIndex - a.txIndex || b.ord - a.ord)
      .map(({ txIndex, ord }) => ({
        height: 100 + 7 * i,
        txIndex,
        ord,
        operation: (txIndex + ord) % OPERATIONS.length,
        txId: hex(`${i} ${txIndex}`),
        amount: `${i}/${txIndex}/${ord}${'x'.repeat(ord * 40)}`,
      })),
  );
}
type Made = ReturnType<typeof recordsOf>[number];

/** Creates a table of canonical records. */
async function tableOf(records: readonly Made[]): Promise<Table> {
  const table = await store.table('records', RECORDS);
  const values = records.map((r) => {
    const cells: Partial<Record<keyof typeof RECORDS, string | number>> = {
      ...{ source: 1, rune_id: '1:0', rune_number: 1, rune_name: 'A', rune_spaced_name: 'A', amount: r.amount, timestamp: 1 },
      ...{ block_height: r.height, block_hash: hex(`${r.height}`), tx_index: r.txIndex, tx_id: r.txId, ord: r.ord },
      ...{ operation: OPERATIONS[r.operation] ?? '', output: r.txId },
    };
    const names = Object.keys(RECORDS) as (keyof typeof RECORDS)[];
    return `(${names.map((name) => (typeof cells[name] === 'string' ? literal(cells[name]) : (cells[name] ?? 'NULL')))})`;
  });
  await store.run(`INSERT INTO ${table} VALUES ${values}`);
  return table;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** Converts the blocks of a batch to plain objects, which have transactions with amounts of records. */
function blocksOf(batch: Batch) {
  return batch.blocks.map((block) => {
    let first = block.first;
    const txs = Array.from({ length: block.transactions }, (_, i) => {
      const tx = block.firstTx + i;
      const count = batch.txRecords[tx] ?? 0;
      first += count;
      const records = JSON.parse(`[${text(sliceRecords(batch, first - count, first))}]`) as {
        amount: string;
        location: { tx_id: string };
      }[];
      expect(records.map(({ location }) => location.tx_id.slice(2)).every((id, _, [one]) => id === one)).toBe(true);
      return [text(batch.txIds.subarray(tx * TX_ID_LENGTH, (tx + 1) * TX_ID_LENGTH)), records.map(({ amount }) => amount)];
    });
    expect(first).toBe(block.first + block.records);
    const codes = Array.from(batch.operations.subarray(block.first, first));
    const digest = createHash('sha256')
      .update(sliceRecords(batch, block.first, first))
      .digest('hex');
    expect(block.digest).toBe(digest);
    return { height: block.height, operations: block.operations, txs, codes };
  });
}

const SITE = { layout: 'files', dialect: 'contract', pageSizes: [20], operationPages: true, parquet: false } as const;

async function batchesOf(records: readonly Made[], expected: readonly ExpectedBlock[], batchRecords: number, servedAtOnce: number) {
  const table = await tableOf(records);
  const batches: Batch[] = [];
  try {
    for await (const batch of renderBatches(store, SITE, expected, { batchRecords, servedAtOnce }, table, [])) batches.push(batch);
  } finally {
    await store.run(`DROP TABLE ${table}`);
  }
  return batches;
}

it('makes blocks from records in any order', async () => {
  const counts = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 });
  const sizes = fc.record({ batch: fc.integer({ min: 1, max: 60 }), atOnce: fc.integer({ min: 1, max: 90 }) });
  await fc.assert(
    fc.asyncProperty(counts, sizes, fc.infiniteStream(fc.nat()), async (blocks, { batch, atOnce }, random) => {
      const served = recordsOf(blocks);
      const arriving = served.map((r) => [random.next().value, r] as const).sort(([a], [b]) => a - b);
      const expected = blocks.map((txs, i) => ({ height: 100 + 7 * i, hash: hex(`${i}`), records: txs.reduce((a, b) => a + b, 0) }));
      const batches = await batchesOf(
        arriving.map(([, r]) => r),
        expected,
        batch,
        atOnce,
      );
      const wanted = expected.map(({ height }) => {
        const own = served.filter((r) => r.height === height);
        return {
          height,
          operations: OPERATIONS.map((_, code) => own.filter((r) => r.operation === code).length),
          txs: [...new Set(own.map((r) => r.txId))].map((id) => [id, own.filter((r) => r.txId === id).map((r) => r.amount)]),
          codes: own.map((r) => r.operation),
        };
      });
      expect(batches.flatMap(blocksOf)).toEqual(wanted);
      // Only the last batch may be smaller, and none has a block more than it needs.
      const sizesOf = batches.map(({ blocks: all }) => all.map(({ records }) => records));
      for (const sizes of sizesOf.slice(0, -1)) expect(sizes.reduce((a, b) => a + b, 0)).toBeGreaterThanOrEqual(batch);
      for (const sizes of sizesOf) expect(sizes.slice(0, -1).reduce((a, b) => a + b, 0)).toBeLessThan(batch);
    }),
    { numRuns: 40 },
  );
});

it('throws when a block has too few or too many records, or was not announced', async () => {
  const records = recordsOf([[1], [2]]);
  const block = (height: number, count: number) => ({ height, hash: hex('0'), records: count });
  const failing = (...expected: ExpectedBlock[]) => expect(batchesOf(records, expected, 10, 100)).rejects;
  await failing(block(100, 2), block(107, 2)).toThrow('block 100 has fewer records than were counted');
  await failing(block(100, 1), block(107, 3)).toThrow('block 107 has fewer records than were counted');
  await failing(block(100, 1), block(107, 1)).toThrow('block 107 has more records than were counted');
  await failing(block(99, 1), block(107, 2)).toThrow('unexpected records of block 100, which was not counted');
});
