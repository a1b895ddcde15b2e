/**
 * Tests the parser of lines of outputs, which searches for separators. Its result equals that of JSON.parse(), even for
 * lines whose JSON is written in another way, for example with spaces.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type LedgerOutput, parseLedgerOutput } from '../../src/lists/ledgerOutputs.ts';
import { SPENT } from '../../src/lists/unspentOutputs.ts';
import '../support/seed.ts';

const OUTPUT = `${'ab'.repeat(32)}:1`;
/** Returns a line of these values as archive readers have it: one character for each byte. */
const lineOf = (values: readonly string[]) => values.map((value) => `\t${Buffer.from(value).toString('latin1')}`).join('');
const parse = (values: readonly string[]) => parseLedgerOutput(OUTPUT, lineOf(values), () => values);

function expectedOf([first = '', ...runes]: readonly string[]): LedgerOutput | undefined {
  if (first === SPENT) return undefined;
  const [height, hash, txIndex, timestamp, address] = JSON.parse(first);
  const held = runes.map((rune) => JSON.parse(rune)).map((rune) => [rune[0], String(BigInt(rune[5]))] as const);
  return { output: OUTPUT, place: [height, hash, txIndex, timestamp], address: address ?? undefined, runes: held };
}

const number = fc.oneof(fc.nat(), fc.nat({ max: Number.MAX_SAFE_INTEGER }));
const hash = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 });
const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constantFrom('a","b', '],[', '"]', 'tb1qxy', '•', '\t', ''));
const units = fc.oneof(fc.bigInt(0n, 2n ** 128n).map(String), fc.constantFrom('0', '007', '00'));
const id = fc.oneof(
  fc.tuple(fc.nat(), fc.nat()).map((parts) => parts.join(':')),
  text,
);
const place = fc.tuple(number, hash, number, number, fc.option(text));
const rune = fc.tuple(id, number, text, text, fc.nat(38), units);

it('gives the same values as JSON.parse() for each output', () => {
  fc.assert(
    fc.property(place, fc.array(rune, { maxLength: 4 }), fc.boolean(), (head, runes, isSpaced) => {
      const render = (value: unknown) => (isSpaced ? JSON.stringify(value, null, 1).replaceAll('\n', ' ') : JSON.stringify(value));
      const values = [render(head), ...runes.map(render)];
      expect(parse(values)).toEqual(expectedOf(values));
    }),
    { numRuns: 2000 },
  );
  expect(parse([SPENT])).toBeUndefined();
});

it('never mistakes a cut or changed output for another one', () => {
  const values = [`[840000,"${'0f'.repeat(32)}",12,1713571767,"bc1qxy"]`, '["840000:3",2,"A","A",0,"5"]'];
  const whole = lineOf(values);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: whole.length - 1 }), fc.constantFrom('', '"', ',', ']', '[', '\t', '1', 'x', '\\'), (at, put) => {
      const line = `${whole.slice(0, at)}${put}${whole.slice(at + 1)}`;
      const changed = line.split('\t').slice(1);
      let expected: LedgerOutput | undefined;
      try {
        expected = expectedOf(changed);
      } catch {
        // A LedgerOutput lacks the middle of a rune (its number and names), so the parser does not check this part of a
        // line.
        if (at > whole.lastIndexOf('\t') + 11) return;
        expect(() => parseLedgerOutput(OUTPUT, line, () => changed)).toThrow();
        return;
      }
      expect(parseLedgerOutput(OUTPUT, line, () => changed)).toEqual(expected);
    }),
    { numRuns: 3000 },
  );
});
