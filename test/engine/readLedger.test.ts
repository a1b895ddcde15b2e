/**
 * Tests that outputs of a ledger are read in the order of their indexes and in small batches, even if a transaction has
 * many outputs or an output has many runes.
 */
import { expect, it } from 'vitest';
import { DocumentWriter, lineOf } from '../../src/engine/archive/documentWriter.ts';
import { outputsUpTo } from '../../src/engine/archive/readLedger.ts';
import { LIMITS } from '../../src/limits.ts';
import { SPENT } from '../../src/lists/unspentOutputs.ts';
import { hex } from '../support/records.ts';

const PLACE = JSON.stringify([5, 'ab'.repeat(32), 1, 1_700_000_000, 'bcrt1q']);
const runeOf = (number: number, units: number) => JSON.stringify([`1:${number}`, number, 'A', 'A', 0, String(units)]);

/**
 * Writes a level of outputs (src/format/levels.ts) into memory. `outputs` has the number of runes of each output. 0
 * means that the level spends the output.
 */
async function levelOf(outputs: ReadonlyMap<string, number>, first: number, last: number, files: Map<string, Buffer>) {
  const put = (content: Uint8Array) => {
    const name = `${first}-${files.size}`;
    files.set(name, Buffer.from(content));
    return name;
  };
  const writer = new DocumentWriter(1 << 16, LIMITS, put);
  for (const key of [...outputs.keys()].sort()) {
    const runes = Array.from({ length: outputs.get(key) ?? 0 }, (_, i) => runeOf(i, i + 1));
    writer.addLine(lineOf({ key, values: runes.length === 0 ? [SPENT] : [PLACE, ...runes] }));
  }
  const level = await writer.finish({ first, last });
  if (level === undefined) throw new Error('the level is empty');
  return level;
}

it('yields at most 1,024 runes per batch, except for a single output with more, and each unspent output once', async () => {
  const [wide, full] = [hex('wide'), hex('full')];
  const made = new Map<string, number>(Array.from({ length: 3000 }, (_, i) => [`${hex(`single ${i}`)}:${i % 3}`, 1]));
  for (let vout = 0; vout < 2500; vout++) made.set(`${wide}:${vout}`, 1);
  for (let vout = 0; vout < 12; vout++) made.set(`${full}:${vout}`, vout === 10 ? 3000 : 300);
  const spent = new Map([...made.keys()].filter((_, i) => i % 7 === 3).map((key) => [key, 0]));
  const files = new Map<string, Buffer>();
  const levels = [await levelOf(made, 0, 9, files), await levelOf(spent, 10, 19, files)];
  const lists = { outputs: { tipHash: '', outputs: levels, addresses: [], starts: [] } };
  const batches = await (async () => {
    const found: { output: string; runes: number }[][] = [];
    const read = (file: string) => files.get(file) ?? Buffer.alloc(0);
    for await (const batch of outputsUpTo(19, lists, { read }))
      found.push(batch.map(({ output, runes }) => ({ output, runes: runes.length })));
    return found;
  })();
  for (const batch of batches) {
    const before = batch.slice(0, -1).reduce((sum, { runes }) => sum + runes, 0);
    expect(before).toBeLessThan(1024);
  }
  const order = (output: string) => `${output.slice(0, 64)}${output.slice(65).padStart(6, '0')}`;
  const expected = [...made].filter(([key]) => !spent.has(key)).map(([output, runes]) => ({ output, runes }));
  expected.sort((a, b) => (order(a.output) < order(b.output) ? -1 : 1));
  expect(batches.flat()).toEqual(expected);
  expect(batches.length).toBeGreaterThan(5);
});
