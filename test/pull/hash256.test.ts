/** Hashes of many messages at once, compared with those of Node's own SHA-256. */
import { expect, it } from 'vitest';
import { hash256, hash256With } from '../../src/pull/node/hash256.ts';
import { LARGEST_BLOCK } from '../../src/pull/node/nodeAnswers.ts';
import { hashParts } from '../../src/runes/bytes.ts';
import { randomFor } from '../support/seed.ts';

const single = hash256With(undefined);

it.each([0, 1, 2, 3, 4, 5, 1000])('hashes %i messages of any length at once like one by one', (count) => {
  const random = randomFor(`messages ${count}`);
  const bytes = Uint8Array.from({ length: 20_000 }, () => 256 * random());
  // First all lengths of up to two blocks with their padding, then any.
  const lengths = Array.from({ length: count }, (_, i) => (count > 140 && i < 140 ? i : Math.floor(1000 * random() ** 3)));
  const starts = lengths.map((length) => Math.floor((bytes.length - length) * random()));
  const ends = starts.map((start, i) => start + (lengths[i] ?? 0));
  expect(hash256.parts).toBeDefined();
  const moves = starts.flatMap((start, i) => ((lengths[i] ?? 0) > 8 ? [start + 2, start] : []));
  expect(hashParts(bytes, { starts, ends, moves }, hash256)).toEqual(hashParts(bytes, { starts, ends, moves }, single));
});

it('hashes the largest block as one message, and short messages after it', () => {
  const bytes = new Uint8Array(LARGEST_BLOCK).fill(0xee);
  for (const end of [bytes.length, 0, 64])
    expect(Buffer.from(hashParts(bytes, { starts: [0], ends: [end] }, hash256)).equals(single(bytes.subarray(0, end)))).toBe(true);
});
