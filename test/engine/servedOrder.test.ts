/**
 * Tests that records in any order and in batches of any size become complete blocks in served order
 * (src/engine/render/servedOrder.ts).
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Blobs } from '../../src/duckdb/columns.ts';
import { sliceRecords } from '../../src/engine/render/recordBytes.ts';
import { type Arrivals, Assembler, type Batch, TX_ID_LENGTH } from '../../src/engine/render/servedOrder.ts';
import { hex } from '../support/records.ts';

/** Returns the records of some blocks in served order, each with a different text. */
function recordsOf(blocks: readonly (readonly number[])[]) {
  return blocks.flatMap((txs, i) =>
    txs
      .flatMap((count, txIndex) => Array.from({ length: count }, (_, ord) => ({ txIndex, ord })))
      .sort((a, b) => b.txIndex - a.txIndex || b.ord - a.ord)
      .map(({ txIndex, ord }) => ({
        height: 100 + i,
        txIndex,
        ord,
        operation: (txIndex + ord) % 5,
        txId: Buffer.from(hex(`${i} ${txIndex}`)),
        json: Buffer.from(`${i}/${txIndex}/${ord}${'x'.repeat(ord * 40)}`),
      })),
  );
}

/** Returns these bytes as a column of blobs in the form of a DuckDB chunk. */
function blobsOf(parts: readonly Uint8Array[]): Blobs {
  const offsets = new Float64Array(parts.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = (offsets[i] ?? 0) + part.length;
  const whole = Buffer.concat(parts);
  return {
    offsets,
    copyTo: (target, at, from, to) => target.set(whole.subarray(offsets[from], offsets[to]), at),
    eachPart: (begin, end, take) => take(whole.subarray(begin, end)),
  };
}

const arrivalsOf = (records: ReturnType<typeof recordsOf>): Arrivals => ({
  count: records.length,
  heights: Float64Array.from(records, (r) => r.height),
  txIndexes: Float64Array.from(records, (r) => r.txIndex),
  ords: Float64Array.from(records, (r) => r.ord),
  operations: Uint8Array.from(records, (r) => r.operation),
  txIds: blobsOf(records.map((r) => r.txId)),
  json: blobsOf(records.map((r) => Buffer.concat([r.json, Buffer.from(',')]))),
  contractJson: undefined,
});

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** Converts the blocks of a batch to plain objects, which have transactions with records. */
function blocksOf(batch: Batch) {
  return batch.blocks.map((block) => {
    let first = block.first;
    const txs = Array.from({ length: block.transactions }, (_, i) => {
      const tx = block.firstTx + i;
      const count = batch.txRecords[tx] ?? 0;
      first += count;
      return [text(batch.txIds.subarray(tx * TX_ID_LENGTH, (tx + 1) * TX_ID_LENGTH)), text(sliceRecords(batch, first - count, first))];
    });
    expect(first).toBe(block.first + block.records);
    const codes = Array.from(batch.operations.subarray(block.first, first));
    return { height: block.height, digest: block.digest, operations: block.operations, txs, codes };
  });
}

it('assembles blocks from records in any order', () => {
  const counts = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(
      counts,
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 30 }),
      fc.boolean(),
      fc.infiniteStream(fc.nat()),
      (blocks, size, chunk, isOrdered, random) => {
        const served = recordsOf(blocks);
        const arriving = isOrdered
          ? served
          : served
              .map((r) => [random.next().value, r] as const)
              .sort(([a], [b]) => a - b)
              .map(([, r]) => r);
        const expected = blocks.map((txs, i) => ({ height: 100 + i, hash: hex(`${i}`), records: txs.reduce((a, b) => a + b, 0) }));
        const assembler = new Assembler(expected, size);
        const batches: Batch[] = [];
        for (let i = 0; i < arriving.length; i += chunk) {
          const arrivals = arrivalsOf(arriving.slice(i, i + chunk));
          for (let row = 0; row < arrivals.count; ) {
            row = assembler.add(arrivals, row);
            if (assembler.isWhole) batches.push(assembler.take());
          }
          if (assembler.isReady) batches.push(assembler.take());
        }
        assembler.finish();

        const made = batches.flatMap(blocksOf).sort((a, b) => a.height - b.height);
        const wanted = expected.map(({ height }) => {
          const own = served.filter((r) => r.height === height);
          const ids = [...new Set(own.map((r) => text(r.txId)))];
          const join = (records: typeof own) => records.map((r) => text(r.json)).join(',');
          return {
            height,
            digest: createHash('sha256').update(join(own)).digest('hex'),
            operations: [0, 1, 2, 3, 4].map((code) => own.filter((r) => r.operation === code).length),
            txs: ids.map((id) => [id, join(own.filter((r) => text(r.txId) === id))]),
            codes: own.map((r) => r.operation),
          };
        });
        expect(made).toEqual(wanted);
      },
    ),
    { numRuns: 500 },
  );
});

it('throws when a block has too few or too many records, or was not announced', () => {
  const [record] = recordsOf([[1]]);
  if (record === undefined) throw new Error('no record');
  const block = (records: number) => [{ height: 100, hash: hex('0'), records }];
  const short = new Assembler(block(2), 10);
  short.add(arrivalsOf([record]), 0);
  expect(() => short.finish()).toThrow('1 block(s) have fewer records than were counted, first 100');
  expect(() => new Assembler(block(1), 10).add(arrivalsOf([{ ...record, height: 7 }]), 0)).toThrow(
    'unexpected records of block 7, which was not counted',
  );
  const long = new Assembler(block(1), 10);
  long.add(arrivalsOf([record]), 0);
  expect(() => long.add(arrivalsOf([record]), 0)).toThrow('block 100 has more records than were counted');
});
