/** Tests the ids of transactions, with both ways to compute a hash. */
import { expect, it } from 'vitest';
import { hash256, hash256With } from '../../src/pull/node/hash256.ts';
import { readUnconfirmed } from '../../src/runes/parseBlock.ts';
import { randomFor } from '../support/seed.ts';

const single = hash256With(undefined);

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
