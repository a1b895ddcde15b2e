/** Tests lists as CSV: quoting according to RFC 4180, columns, missing values, and text that a spreadsheet would execute. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CSV_PATHS, csvColumns, csvLine, csvLines } from '../../src/lists/csv.ts';

/** Parses CSV by the grammar of RFC 4180. A cell that is empty and not quoted is undefined. */
function parse(text: string): (string | undefined)[][] {
  const records: (string | undefined)[][] = [[]];
  const rule = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  for (let match = rule.exec(text); match !== null; match = rule.exec(text)) {
    const [, quoted, plain, end] = match;
    records.at(-1)?.push(quoted === undefined ? plain || undefined : quoted.replaceAll('""', '"'));
    if (end === '\r\n') records.push([]);
  }
  expect(records.pop()).toEqual([]);
  return records;
}

describe('a line', () => {
  it('is parsed back to the same text, except for formulas', () => {
    const cell = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(',', '"', '\r', '\n', '', 'a', '=', '•') }),
      fc.constant(undefined),
    );
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 1 }), { minLength: 1 }), (lines) => {
        const safe = (text: string | undefined) => (text !== undefined && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
        expect(parse(lines.map(csvLine).join(''))).toEqual(lines.map((line) => line.map(safe)));
      }),
    );
  });

  it.each([
    ['=1+1', `'=1+1\r\n`],
    ['@SUM(A1)', `'@SUM(A1)\r\n`],
    ['+1', `'+1\r\n`],
    ['-1', `'-1\r\n`],
    ['\t=1', `'\t=1\r\n`],
    ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"\r\n`],
    [-1, '-1\r\n'],
    ['DOG•GO', 'DOG•GO\r\n'],
    ['', '""\r\n'],
    [undefined, '\r\n'],
  ])('with %j', (value, line) => {
    expect(csvLine([value])).toBe(line);
  });
});

const RUNE = { id: '840000:3', number: 3, name: 'DOGGO', spaced_name: 'DOG•GO' };

it('the columns of a list are names of its values', () => {
  expect(
    Object.fromEntries(
      (['holders', 'balances', 'activity', 'rune_activity', 'outputs', 'newest', 'active'] as const).map((list) => [
        list,
        csvColumns(list).join(),
      ]),
    ),
  ).toEqual({
    holders: 'address,balance',
    balances: 'address,rune_id,rune_number,rune_name,rune_spaced_name,balance',
    activity:
      'rune_id,rune_number,rune_name,rune_spaced_name,address,receiver_address,amount,operation,block_hash,block_height,tx_id,tx_index,vout,output,timestamp',
    rune_activity: 'address,receiver_address,amount,operation,block_hash,block_height,tx_id,tx_index,vout,output,timestamp',
    outputs: 'output,address,block_hash,block_height,tx_id,tx_index,timestamp,rune_id,rune_number,rune_name,rune_spaced_name,balance',
    newest:
      'id,number,name,spaced_name,divisibility,symbol,turbo,mint_terms_amount,mint_terms_cap,mint_terms_height_start,mint_terms_height_end,mint_terms_offset_start,mint_terms_offset_end,supply_current,supply_premine,supply_minted,supply_total_mints,supply_mintable,supply_burned,supply_total_burns,block_hash,block_height,tx_id,tx_index,timestamp',
    active: 'id,number,name,spaced_name,records,etching,mint,burn,send,receive',
  });
  expect(Object.keys(CSV_PATHS)).toHaveLength(7);
});

it('an entry has a line, and an output has a line for each rune', () => {
  const location = { block_hash: 'aa', block_height: 5, tx_id: 'bb', tx_index: 0, timestamp: 7 };
  expect(csvLines('balances', { rune: RUNE, balance: '1.5', address: 'a' })).toEqual(['a,840000:3,3,DOGGO,DOG•GO,1.5\r\n']);
  expect(csvLines('activity', { rune: RUNE, operation: 'etching', location })).toEqual([
    '840000:3,3,DOGGO,DOG•GO,,,,etching,aa,5,bb,0,,,7\r\n',
  ]);
  const runes = ['1', '2'].map((balance) => ({ rune: RUNE, balance }));
  expect(csvLines('outputs', { output: 'bb:0', location, runes })).toEqual(
    ['1', '2'].map((balance) => `bb:0,,aa,5,bb,0,7,840000:3,3,DOGGO,DOG•GO,${balance}\r\n`),
  );
});
