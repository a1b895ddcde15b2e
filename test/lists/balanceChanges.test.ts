/** Compares the SQL that converts amounts to smallest units with large integers of JavaScript. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { flag, literal, Store, text } from '../../src/duckdb/store.ts';
import { digitsOf, joinedParts, sumsOf, unitsOf } from '../../src/lists/balanceChanges.sql.ts';
import { temporaryFolder } from '../support/build.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: temporaryFolder() });
});
afterAll(() => store.close());

/** Cuts off decimals beyond the rune's divisibility. An amount with more than 39 digits is 0. */
function expectedUnits(amount: string, divisibility: number): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  const digits = whole.replace(/^0+/, '');
  return digits.length + divisibility > 39 ? 0n : BigInt(`0${digits}${decimals.slice(0, divisibility).padEnd(divisibility, '0')}`);
}

async function expectUnits(amounts: readonly (readonly [amount: string, divisibility: number])[]): Promise<void> {
  const values = amounts.map(([amount, divisibility], i) => `(${i}, ${literal(amount)}, ${divisibility}::BIGINT)`);
  const rows = await store.rows(`SELECT ${unitsOf('a', 'd')} AS units FROM (VALUES ${values.join(', ')}) AS t(i, a, d) ORDER BY i`, {
    units: text,
  });
  expect(rows.map(({ units }) => BigInt(units))).toEqual(amounts.map(([amount, divisibility]) => expectedUnits(amount, divisibility)));
}

it('converts amounts with fewer, as many and more decimals than the rune has', () =>
  expectUnits([
    ...['0', '1', '12345', '0.00001', '12345.6', '1.23456', '0.123456', '0.0', '001.50'].map((amount) => [amount, 5] as const),
    ...['0', '7', '7.5', '10'].map((amount) => [amount, 0] as const),
    // 18 and 19 characters; 38, 39 and 40 digits.
    ['123456789012345.12', 2],
    ['1234567890123456.12', 2],
    ['123456789012345678', 0],
    ['1234567890123456789', 0],
    ['9'.repeat(38), 0],
    ['3'.repeat(39), 0],
    ['3'.repeat(40), 0],
    ['3'.repeat(30), 10],
    ['00'.concat('3'.repeat(39)), 0],
  ]));

it('converts random amounts', async () => {
  const digits = (min: number, max: number) => fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`));
  const amount = fc.tuple(digits(1, 24), fc.option(digits(1, 20), { nil: undefined })).map(([a, b]) => (b === undefined ? a : `${a}.${b}`));
  const rows = fc.array(fc.tuple(amount, fc.integer({ min: 0, max: 38 })), { minLength: 100, maxLength: 100 });
  await fc.assert(fc.asyncProperty(rows, expectUnits), { numRuns: 20 });
});

it('adds and subtracts units of any length, and normalises the sums', async () => {
  const units = fc.bigInt(0n, 10n ** 38n).chain((most) => fc.bigInt(0n, most));
  const sums = fc.array(fc.array(fc.tuple(units, fc.boolean()), { minLength: 1, maxLength: 5 }), { minLength: 50, maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(sums, async (all) => {
      const values = all.flatMap((one, i) => one.map(([amount, isSent]) => `(${i}, '${amount}', ${isSent ? -1 : 1})`));
      const rows = await store.rows(
        `SELECT sign(upper) * sign(lower) < 0 AS is_mixed, CASE WHEN upper < 0 OR lower < 0 THEN '-' ELSE '' END || ltrim(${digitsOf('upper', 'lower')}, '-') AS sum
         FROM (SELECT i, ${joinedParts('upper', 'lower')} FROM (SELECT i, ${sumsOf('units', 'sign')} FROM (VALUES ${values.join(', ')}) AS t(i, units, sign) GROUP BY i))
         ORDER BY i`,
        { is_mixed: flag, sum: text },
      );
      const expected = all.map((one) => String(one.reduce((sum, [amount, isSent]) => sum + (isSent ? -amount : amount), 0n)));
      expect(rows).toEqual(expected.map((sum) => ({ is_mixed: false, sum })));
    }),
    { numRuns: 10 },
  );
});
