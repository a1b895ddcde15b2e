/** Compares the parallel hashing of many messages with Node's own SHA-256. */
import { expect, it } from 'vitest';
import { hash256, hash256With } from '../../src/pull/node/hash256.ts';
import { LARGEST_BLOCK } from '../../src/pull/node/nodeAnswers.ts';
import { hashParts } from '../../src/runes/bytes.ts';
import { readUnconfirmed } from '../../src/runes/parseBlock.ts';
import { randomFor } from '../support/seed.ts';

const single = hash256With(undefined);

it.each([0, 1, 2, 3, 4, 5, 1000])('hashes %i messages of any length in parallel with the same result as one by one', (count) => {
  const random = randomFor(`messages ${count}`);
  const bytes = Uint8Array.from({ length: 20_000 }, () => 256 * random());
  // First come all lengths of messages that fit into two padded blocks of SHA-256, then random lengths.
  const lengths = Array.from({ length: count }, (_, i) => (count > 140 && i < 140 ? i : Math.floor(1000 * random() ** 3)));
  const starts = lengths.map((length) => Math.floor((bytes.length - length) * random()));
  const ends = starts.map((start, i) => start + (lengths[i] ?? 0));
  expect(hash256.parts).toBeDefined();
  const moves = starts.flatMap((start, i) => ((lengths[i] ?? 0) > 8 ? [start + 2, start] : []));
  expect(hashParts(bytes, { starts, ends, moves }, hash256)).toEqual(hashParts(bytes, { starts, ends, moves }, single));
});

it('gives the ids of transactions without witnesses, with empty ones and with others, and changes no byte of a block', () => {
  const random = randomFor('ids of transactions');
  const below = (count: number) => Math.floor(count * random());
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => below(256));
  const sized = (most: number) => {
    const length = below(most);
    return [Uint8Array.of(length), bytes(length)];
  };
  const list = (count: number, make: () => readonly Uint8Array[]) => Array.from({ length: count }, make).flat();
  for (let block = 0; block < 300; block++) {
    const ids: Uint8Array[] = [];
    const transactions = list(1 + below(9), () => {
      const [version, lock, inputs, outputs] = [bytes(4), bytes(4), 1 + below(3), below(3)];
      const spent = list(inputs, () => [bytes(36), ...sized(80), bytes(4)]);
      const body = [Uint8Array.of(inputs), ...spent, Uint8Array.of(outputs), ...list(outputs, () => [bytes(8), ...sized(200)])];
      ids.push(single(Buffer.concat([version, ...body, lock])));
      if (below(3) === 0) return [version, ...body, lock];
      const witnesses = list(inputs, () => {
        const elements = below(2) * below(3);
        return [Uint8Array.of(elements), ...list(elements, () => sized(90))];
      });
      return [version, Uint8Array.of(0, 1), ...body, ...witnesses, lock];
    });
    const all = Buffer.concat(transactions);
    const before = Buffer.from(all);
    for (const way of [hash256, single])
      expect(Buffer.from(readUnconfirmed(all, ids.length, way).txids).equals(Buffer.concat(ids)), String(block)).toBe(true);
    expect(all.equals(before)).toBe(true);
  }
});

it('hashes the largest block as one message, and short messages after it', () => {
  const bytes = new Uint8Array(LARGEST_BLOCK).fill(0xee);
  for (const end of [bytes.length, 0, 64])
    expect(Buffer.from(hashParts(bytes, { starts: [0], ends: [end] }, hash256)).equals(single(bytes.subarray(0, end)))).toBe(true);
});
