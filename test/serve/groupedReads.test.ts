/**
 * Tests the reads of a client that looks up many outputs. Reads of neighbouring parts of a file are joined, each caller gets a copy of its
 * part, and the number of simultaneous reads is limited.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { crossings, READER_LIMITS } from '../../src/limits.ts';
import type { MirrorFiles } from '../../src/serve/client/clientFiles.ts';
import { groupedReads } from '../../src/serve/client/groupedReads.ts';

const usual = { ...READER_LIMITS };
Object.assign(READER_LIMITS, { nearBytes: 8, groupBytes: 100, concurrentReads: 3 });
afterAll(() => Object.assign(READER_LIMITS, usual));

const BYTES = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
let reads: [offset: number, length: number][];
let [running, most] = [0, 0];
beforeEach(() => {
  [reads, running, most] = [[], 0, 0];
  crossings.clear();
});

/** Returns the result after some time, and counts the reads that run at the same time. */
async function slowly<Result>(result: Result): Promise<Result> {
  running += 1;
  most = Math.max(most, running);
  await turn();
  running -= 1;
  return result;
}
const files = groupedReads({
  open: () => slowly(undefined),
  read: (_path, offset, length) => {
    reads.push([offset, length]);
    return slowly(BYTES.subarray(offset, offset + length));
  },
  inflate: () => Promise.resolve(''),
  file: () => Promise.resolve(undefined),
} satisfies MirrorFiles);

const partsAt = (offsets: readonly number[], length: number) =>
  Promise.all(offsets.map(async (offset) => Array.from((await files.read('a', offset, length, BYTES.length)) ?? [])));
const expected = (offsets: readonly number[], length: number) => offsets.map((at) => Array.from(BYTES.subarray(at, at + length)));

it('near parts of a file are joined into one read, up to a size, and few reads run in parallel', async () => {
  const offsets = Array.from({ length: 50 }, (_, i) => i * 20);
  expect(await partsAt(offsets, 12)).toEqual(expected(offsets, 12));
  // One joined read gets five parts with the gaps between them, 92 bytes. Six parts would have 112 bytes, which is more than a joined read
  // may have.
  expect(reads).toEqual(Array.from({ length: 10 }, (_, i) => [i * 100, 92]));
  expect(most).toBe(3);
  expect([crossings.has('groupBytes'), crossings.has('concurrentReads')]).toEqual([true, true]);
});

it('distant parts, and a part that is larger than a group, are separate reads', async () => {
  expect(await partsAt([0, 21, 42], 12)).toEqual(expected([0, 21, 42], 12));
  expect(await partsAt([300, 310], 200)).toEqual(expected([300, 310], 200));
  expect(reads).toEqual([...[0, 21, 42].map((at) => [at, 12]), [300, 200], [310, 200]]);
});

it('a file that cannot be read does not reduce the number of other reads', async () => {
  const failing = groupedReads({ ...files, open: () => Promise.reject(new Error('gone')) } as MirrorFiles);
  const opened = await Promise.allSettled(Array.from({ length: 10 }, () => failing.open('b')));
  expect(opened.map(({ status }) => status)).toEqual(opened.map(() => 'rejected'));
});
