/** Compares the table of changes with a map. There are so many outputs that the table must grow several times. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { copyOf, lend, outpointText } from '../../src/runes/bytes.ts';
import { ChangeTable } from '../../src/unspent/changeTable.ts';
import { outpointOf } from '../support/memoryLedger.ts';

/**
 * The first table has 4,096 slots and doubles when it is half full. With this number of outputs it doubles several
 * times.
 */
const OUTPUTS = 10_000;

it('finds each created and spent output, and no other, after it has grown', () => {
  const keyOf = (name: string, i: number) => outpointOf(createHash('sha256').update(`${name} ${i}`).digest('hex'), i % 3);
  const outpoints = Array.from({ length: OUTPUTS }, (_, i) => keyOf('made', i));
  const values = new Map<string, string>();
  const table = new ChangeTable();
  for (const [i, key] of outpoints.entries()) {
    const value = Buffer.from(`value ${i}`);
    if (i % 5 === 4) table.spend(key, 0);
    else table.create(key, 0, lend(value));
    if (i % 5 === 3) table.spend(key, 0);
    values.set(outpointText(key, 0), i % 5 >= 3 ? 'spent' : `value ${i}`);
  }
  expect(table.count).toBe(OUTPUTS);
  const found = outpoints.map((key, i) => {
    const value = table.find(key, 0);
    return typeof value === 'object' ? Buffer.from(value.take(`value ${i}`.length) as unknown as Uint8Array).toString() : value;
  });
  expect(found).toEqual(outpoints.map((key) => values.get(outpointText(key, 0))));
  expect(outpoints.filter((_, i) => table.find(keyOf('other', i), 0) !== undefined)).toEqual([]);
  // Omits outputs that were both created and spent: the table must not return them.
  const kept = outpoints.filter((_, i) => i % 5 !== 3).map((key) => Buffer.from(key));
  const sorted = Array.from(table.sorted(), ({ bytes, at }) => Buffer.from(copyOf(bytes, at, at + 36)));
  expect(sorted.map((key) => key.toString('hex'))).toEqual(kept.sort(Buffer.compare).map((key) => key.toString('hex')));
});
