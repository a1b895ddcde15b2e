/** Compares the ledger on disk with a map in memory, through random blocks, rewinds, merged files and damaged files. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attempt } from '../../src/attempt.ts';
import { LIMITS } from '../../src/limits.ts';
import { outpointBytes, outpointText } from '../../src/runes/bytes.ts';
import { runeId } from '../../src/runes/runeId.ts';
import type { Changes, RuneOutput } from '../../src/runes/unspentLedger.ts';
import { DiskLedger, type IndexedBlock, type KnownRune } from '../../src/unspent/diskLedger.ts';
import { entryOf, outputAt } from '../../src/unspent/entries.ts';
import { DamagedStateError, writeSortedFile } from '../../src/unspent/sortedFile.ts';
import { temporaryFolder } from '../support/build.ts';
import { outpointOf } from '../support/memoryLedger.ts';

const FIRST = 840_000;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const open = (folder: string, limits = LIMITS) => new DiskLedger({ folder, network: 'main', firstHeight: FIRST, rowsFrom: FIRST, limits });

interface Applied {
  readonly block: IndexedBlock;
  readonly changes: Changes;
}

/** Opens a ledger again, and applies the blocks that are not settled, as a pull does from their rows. */
function reopened(folder: string, applied: readonly Applied[], runes: readonly KnownRune[] = []): DiskLedger {
  const ledger = open(folder);
  for (const rune of runes) ledger.addRune(rune);
  for (const { block, changes } of applied) if (block.height > ledger.base) ledger.apply(block, changes);
  return ledger;
}

/** Expected content of the ledger after a block. */
interface Model {
  readonly outputs: ReadonlyMap<string, RuneOutput>;
  readonly mints: ReadonlyMap<number, number>;
}

/** Makes a block from a seed. The block spends some outputs and creates others. */
function makeBlock(seed: number, height: number, before: Model): { changes: Changes; after: Model } {
  const outputs = new Map(before.outputs);
  const mints = new Map(before.mints);
  const spent: Uint8Array[] = [];
  let random = seed;
  const next = (below: number) => {
    random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
    return (random >>> 8) % below;
  };
  for (const [outpoint] of before.outputs) {
    if (next(3) !== 0) continue;
    outputs.delete(outpoint);
    spent.push(outpointBytes(outpoint));
  }
  // A third of the transactions have many outputs. The first 32 bytes of their keys are equal.
  const created = Array.from({ length: next(4) }, (_, tx) => {
    const txid = sha256(`${seed} ${height} ${tx}`);
    return Array.from({ length: next(3) === 0 ? 60 : 2 }, (_, vout) => {
      const output: RuneOutput = {
        script: Uint8Array.from({ length: next(2) * 22 }, () => next(256)),
        balances: Array.from({ length: 1 + next(3) }, (_, i) => ({ rune: runeId(FIRST + i, next(50)), amount: BigInt(next(1000)) ** 12n })),
      };
      outputs.set(`${txid}:${vout}`, output);
      return { ...output, outpoint: outpointOf(txid, vout) };
    });
  }).flat();
  const minted = new Map(Array.from({ length: next(3) }, (_, i) => [runeId(FIRST, i), 1 + next(5)] as const));
  for (const [rune, count] of minted) mints.set(rune, (mints.get(rune) ?? 0) + count);
  return { changes: { spent, created, runes: [], mints: minted }, after: { outputs, mints } };
}

/** Throws if the ledger's outputs differ from the model. `all` has every outpoint that has ever existed. */
function compare(ledger: DiskLedger, { outputs }: Model, all: Iterable<string>): void {
  for (const outpoint of all) {
    // Like the bytes of a block, this buffer has the outpoint in its middle.
    const bytes = Buffer.concat([Buffer.alloc(7), outpointBytes(outpoint)]);
    const found = ledger.output(bytes, 7);
    const expected = outputs.get(outpoint);
    expect(found && { ...found, script: [...found.script] }, outpoint).toEqual(expected && { ...expected, script: [...expected.script] });
  }
}

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('block' as const), seed: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('settle' as const), below: fc.nat(4) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('rewind' as const), by: fc.nat(6) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const), isTorn: fc.boolean() }) },
  ),
  { minLength: 10, maxLength: 40 },
);

describe('a ledger on disk', () => {
  it('equals a map in memory after any blocks, rewinds, merges and restarts', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (todo) => {
        const folder = join(temporaryFolder(), 'state');
        let ledger = open(folder);
        const models: Model[] = [{ outputs: new Map(), mints: new Map() }];
        const all = new Set<string>();
        const applied: Applied[] = [];
        const height = () => FIRST + models.length - 2;
        for (const step of todo) {
          if (step.do === 'block') {
            const { changes, after } = makeBlock(step.seed, height() + 1, models.at(-1)!);
            const block = { height: height() + 1, hash: sha256(`${step.seed} ${height()}`) };
            ledger.apply(block, changes);
            models.push(after);
            applied.push({ block, changes });
            for (const { outpoint } of changes.created) all.add(outpointText(outpoint));
          } else if (step.do === 'settle') {
            await ledger.settle(height() - step.below);
          } else if (step.do === 'rewind') {
            const to = Math.max(height() - step.by, ledger.base);
            ledger.rewind(to);
            models.length = to - FIRST + 2;
            applied.length = to - FIRST + 1;
          } else {
            ledger.close();
            if (step.isTorn) writeFileSync(join(folder, `outputs-${ledger.base + 1}-${height()}.sorted`), 'RUNEOUT1');
            ledger = reopened(folder, applied);
          }
          expect(ledger.height).toBe(height());
          compare(ledger, models.at(-1)!, all);
        }
        expect(applied.filter(({ block: { height: at, hash } }) => at >= ledger.base && ledger.hashAt(at) !== hash)).toEqual([]);
        expect([ledger.hashAt(ledger.base - 1), ledger.hashAt(height() + 1)]).toEqual([undefined, undefined]);
        ledger.close();
      }),
      {
        numRuns: 10,
        // A block that spends outputs of settled blocks is removed again, so these outputs come back.
        examples: [
          [[...[1, 2, 3, 4].map((seed) => ({ do: 'block' as const, seed })), { do: 'settle', below: 1 }, { do: 'rewind', by: 1 }]],
        ],
      },
    );
  });

  it('returns outputs that later look-ups in the same file do not change', async () => {
    const ledger = open(join(temporaryFolder(), 'state'));
    // Each output is so large that it fills a page.
    const outputs = [1, 2, 3].map((number) => ({
      outpoint: outpointOf(sha256(`${number}`), number),
      script: new Uint8Array(5000).fill(number),
      balances: [{ rune: runeId(FIRST, number), amount: BigInt(number) }],
    }));
    ledger.apply({ height: FIRST, hash: sha256('a') }, { spent: [], created: outputs, runes: [], mints: new Map() });
    await ledger.settle(FIRST);
    const found = outputs.map(({ outpoint }) => ledger.output(outpoint, 0));
    // A look-up may read a page even if it finds nothing.
    for (let i = 0; i < 2000; i++) ledger.output(outpointOf(sha256(`none ${i}`), 0), 0);
    expect(found).toEqual(outputs.map(({ script, balances }) => ({ script, balances })));
    ledger.close();
  });

  it('keeps an output spent when newer files are merged, whose mark hides it in an older file', async () => {
    const ledger = open(join(temporaryFolder(), 'state'), { ...LIMITS, mergeBelow: 3 });
    const outputs = Array.from({ length: 100 }, (_, i) => ({
      outpoint: outpointOf(sha256(`${i}`), i),
      script: new Uint8Array(200).fill(i),
      balances: [{ rune: runeId(FIRST, 1), amount: 1n }],
    }));
    const spent = outputs[0]!.outpoint;
    const none: Changes = { spent: [], created: [], runes: [], mints: new Map() };
    const each = [outputs.slice(0, 90), outputs.slice(90, 95), outputs.slice(95)];
    for (const [i, created] of each.entries()) {
      ledger.apply({ height: FIRST + i, hash: sha256(`block ${i}`) }, { ...none, spent: i === 1 ? [spent] : [], created });
      await ledger.settle(FIRST + i);
      expect(ledger.output(spent, 0) !== undefined).toBe(i === 0);
    }
    ledger.close();
  });

  it('counts mints of its runes, also of runes in sorted files', async () => {
    const folder = join(temporaryFolder(), 'state');
    const rune = { id: runeId(FIRST, 3), name: 77n, height: FIRST, terms: undefined };
    const openFiles = () =>
      existsSync('/proc/self/fd')
        ? readdirSync('/proc/self/fd').filter((file) => attempt(() => readlinkSync(`/proc/self/fd/${file}`))?.startsWith(folder))
        : [];
    const ledger = open(folder);
    const row = {} as Changes['runes'][number]['row'];
    const none: Changes = { spent: [], created: [], runes: [], mints: new Map() };
    const applied = [0, 1, 2, 3, 4, 5].map((i) => ({
      block: { height: FIRST + i, hash: sha256(`${i}`) },
      changes: i === 0 ? { ...none, runes: [{ ...rune, block: FIRST, mints: 2, row }] } : { ...none, mints: new Map([[rune.id, i]]) },
    }));
    for (const { block, changes } of applied) ledger.apply(block, changes);
    expect(ledger.rune(rune.id)).toEqual({ block: FIRST, terms: undefined, mints: 17 });
    expect([ledger.nameTaken(77n), ledger.nameTaken(78n), ledger.runes]).toEqual([true, false, 1]);
    for (const last of [FIRST + 2, FIRST + 3]) await ledger.settle(last);
    expect(ledger.rune(rune.id)?.mints).toBe(17);
    ledger.rewind(FIRST + 3);
    expect(ledger.rune(rune.id)?.mints).toBe(8);
    ledger.close();
    const later = { ...rune, id: runeId(FIRST + 4, 1), name: 79n, height: FIRST + 4 };
    const again = reopened(folder, applied, [rune, later]);
    expect([again.rune(rune.id)?.mints, again.runes, again.nameTaken(79n)]).toEqual([17, 2, true]);
    again.rewind(FIRST + 3);
    expect([again.rune(rune.id)?.mints, again.runes, again.nameTaken(79n)]).toEqual([8, 1, false]);
    again.close();
    expect(openFiles()).toEqual([]);
  });

  it('detects damage of every file, for any wrong byte or missing end', async () => {
    const folder = join(temporaryFolder(), 'state');
    const ledger = open(folder);
    let model: Model = { outputs: new Map(), mints: new Map() };
    const applied = Array.from({ length: 12 }, (_, i) => {
      const { changes, after } = makeBlock(3 * i + 1, FIRST + i, model);
      model = after;
      return { block: { height: FIRST + i, hash: sha256(`${i}`) }, changes };
    });
    for (const { block, changes } of applied) ledger.apply(block, changes);
    await ledger.settle(FIRST + 9);
    ledger.close();
    const readAll = () => {
      const opened = reopened(folder, applied);
      try {
        compare(opened, model, model.outputs.keys());
        return opened.height;
      } finally {
        opened.close();
      }
    };
    expect(readAll()).toBe(FIRST + 11);
    const files = readdirSync(folder);
    expect(files).toHaveLength(2);
    for (const name of files) {
      const path = join(folder, name);
      const whole = readFileSync(path);
      for (let at = 0; at < whole.length; at += Math.ceil(whole.length / 40)) {
        const damaged = Buffer.from(whole);
        damaged[at] = (damaged[at] ?? 0) ^ 1;
        writeFileSync(path, damaged);
        expect(readAll, `${name} at ${at}`).toThrow(DamagedStateError);
      }
      writeFileSync(path, whole);
      for (const length of [whole.length - 1, 20, 0]) {
        truncateSync(path, length);
        expect(readAll, `${name} with ${length} bytes`).toThrow(DamagedStateError);
      }
      writeFileSync(path, whole);
    }
    expect(readAll()).toBe(FIRST + 11);
  });
});

it('outputs are read as written', () => {
  const balance = fc.record({ rune: fc.maxSafeNat(), amount: fc.bigInt(1n, 2n ** 128n - 1n) });
  const output = fc.record({ script: fc.uint8Array(), balances: fc.array(balance, { minLength: 1 }) });
  fc.assert(fc.property(output, (one) => void expect(outputAt(entryOf(new Uint8Array(36), one), 0)).toEqual(one)));
});

it('A sorted file of many outputs is written with little memory', async () => {
  const [parts, ofPart] = [40, 5000];
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let [first, last] = [0, 0];
  const entries = function* () {
    for (let part = 0; part < parts; part += 1) {
      // Small buffers are pieces of larger ones, which stay in memory as long as one of the pieces does.
      yield Array.from({ length: ofPart }, (_, i) => Buffer.from((part * ofPart + i).toString(16).padStart(144, '0'), 'hex'));
      collect();
      last = process.memoryUsage().arrayBuffers;
      first ||= last;
    }
  };
  const { bytes } = await writeSortedFile(temporaryFolder(), 'sorted', entries(), parts * ofPart, LIMITS);
  expect(bytes).toBe(parts * ofPart * 72);
  expect(last - first).toBeLessThan(bytes / 10);
});
