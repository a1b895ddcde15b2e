/** Tests the ranges of blocks that a pull is asked for. */
import { describe, expect, it } from 'vitest';
import { parseWanted } from '../../src/pull/pullCommand.ts';

describe('--blocks', () => {
  it.each([
    ['840000..', { from: 840_000, to: undefined }],
    ['840000..849999', { from: 840_000, to: 849_999 }],
    ['..849999', { from: undefined, to: 849_999 }],
    ['-2016..', { from: { last: 2016 }, to: undefined }],
    [undefined, { from: undefined, to: undefined }],
  ])('%s', (text, wanted) => expect(parseWanted(text)).toEqual(wanted));

  it.each(['', '..', '840000', '5..4', '-5..9', '-0..', '..-5', 'a..b', '1.5..2', '1e3..', '9'.repeat(17).concat('..')])(
    'refuses %j',
    (text) => expect(() => parseWanted(text)).toThrow(/must be heights/),
  );
});
