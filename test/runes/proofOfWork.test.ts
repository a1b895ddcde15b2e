/**
 * Tests the proof of work of headers: targets of real blocks, the rules of each network, and headers that break these
 * rules.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { NETWORKS } from '../../src/runes/networks.ts';
import { readHeader } from '../../src/runes/parseBlock.ts';
import { PERIOD, retarget, targetOf, type Work, WorkChecker } from '../../src/runes/proofOfWork.ts';
import { ROOT } from '../support/cli.ts';
import { hash256 } from '../support/memoryLedger.ts';

const { main, regtest, signet, testnet4 } = NETWORKS;
const LIMIT = main.difficulty.limit;

/** Returns a header. With the default hash, it meets any target. */
const header = (time: number, bits: number, hash = '00'.repeat(32)): Work => ({ hash, time, bits });

it.each([
  ['of the first change', 1261130161, 1262152739, 0x1d00ffff, 0x1d00d86a],
  ['of the first period, which has the easiest target', 1231006505, 1233061996, 0x1d00ffff, 0x1d00ffff],
  ['of a period shorter than a quarter', 1279008237, 1279297671, 0x1c05a3f4, 0x1c0168fd],
  ['of a period longer than four times', 1263163443, 1269211443, 0x1c387f6f, 0x1d00e1fd],
])('a period has the right target after the mainnet period %s', (_, first, last, before, after) => {
  expect(retarget(before, last - first, LIMIT)).toBe(after);
  const work = new WorkChecker(main.difficulty);
  work.add(0, header(first, before));
  work.add(PERIOD - 1, header(last, before));
  expect(() => work.check(PERIOD, header(last + 600, after - 1))).toThrow(
    /its target is 0x1[cd].*, and the blocks before it require 0x1[cd]/,
  );
  work.check(PERIOD, header(last + 600, after));
  work.check(PERIOD + 1, header(last + 1200, after));
});

it.each([0x1d000000, 0x1d800001, 0x01003456, 0x23000100, 0xff123456])('a target in the form 0x%s is not valid', (bits) => {
  expect(() => targetOf(bits)).toThrow(/is not valid/);
});

it("the target of each value of bits equals Bitcoin's", () => {
  expect(targetOf(0x1d00ffff)).toBe(0xffffn << 208n);
  expect(targetOf(0x03123456)).toBe(0x123456n);
  expect(targetOf(0x02123456)).toBe(0x1234n);
});

describe.each(['849236', '866342'])('the real block %s', (name) => {
  const bytes = decompress(readFileSync(join(ROOT, `test/fixtures/indexing/blocks/${name}.bin.zst`))).subarray(0, 80);

  it('has the work that its header states, and has not after a change of any field', () => {
    const real = readHeader(bytes, hash256);
    const known = () => {
      const work = new WorkChecker(main.difficulty);
      work.add(Number(name) - 1, header(real.time - 600, real.bits));
      return work;
    };
    known().check(Number(name), real);
    for (const at of [0, 4, 36, 68, 76]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => known().check(Number(name), readHeader(changed, hash256))).toThrow(/its hash is above its target 0x170/);
    }
    const easier = Buffer.from(bytes);
    easier.writeUInt32LE(LIMIT, 72);
    expect(() => known().check(Number(name), readHeader(easier, hash256))).toThrow(
      /its target is 0x1d00ffff, and the blocks before it require 0x170/,
    );
    easier.writeUInt32LE(LIMIT + 1, 72);
    expect(() => known().check(Number(name), readHeader(easier, hash256))).toThrow(/is easier than the limit of its network, 0x1d00ffff/);
  });
});

it('a checker without earlier headers requires only valid work', () => {
  const work = new WorkChecker(main.difficulty);
  work.check(840_000, header(1_713_571_767, 0x17034219));
  expect(() => work.check(840_001, header(1_713_572_000, LIMIT))).toThrow(/require 0x17034219/);
  // The first header of this period is unknown, so the target of the next period cannot be computed.
  work.add(840_671, header(1_714_000_000, 0x17034219));
  work.check(840_672, header(1_714_000_600, 0x17033000));
});

it('regtest has one target, and the other networks begin with their easiest target', () => {
  const work = new WorkChecker(regtest.difficulty);
  const easiest = `7fffff${'00'.repeat(29)}`;
  work.check(0, header(1, 0x207fffff, easiest));
  work.check(PERIOD, header(1, 0x207fffff, easiest));
  expect(() => work.check(5, header(1, 0x207fffff, `7fffff${'00'.repeat(28)}01`))).toThrow(/its hash is above its target/);
  expect(() => work.check(5, header(1, 0x1d00ffff))).toThrow(/require 0x207fffff/);
  for (const { difficulty } of [signet, testnet4]) {
    new WorkChecker(difficulty).check(0, header(1, difficulty.limit));
    expect(() => new WorkChecker(difficulty).check(0, header(1, 0x1c00ffff))).toThrow(/require/);
    expect(() => new WorkChecker(difficulty).check(0, header(1, 0x1e0377af))).toThrow(/is easier than the limit of its network/);
  }
});

describe('testnet4', () => {
  const USUAL = 0x1c00ffff;
  const checker = () => {
    const work = new WorkChecker(testnet4.difficulty);
    work.add(PERIOD, header(1000, USUAL));
    return work;
  };

  it('allows the easiest target 20 minutes after the previous block, and then the usual one again', () => {
    const work = checker();
    expect(() => work.check(PERIOD + 1, header(2200, LIMIT))).toThrow(/require 0x1c00ffff/);
    expect(() => work.check(PERIOD + 1, header(2201, USUAL))).toThrow(/require 0x1d00ffff/);
    work.check(PERIOD + 1, header(2201, LIMIT));
    work.check(PERIOD + 2, header(3402, LIMIT));
    expect(() => work.check(PERIOD + 3, header(3403, LIMIT))).toThrow(/require 0x1c00ffff/);
    work.check(PERIOD + 3, header(3403, USUAL));
  });

  it('computes the next target from the first block of the period, not from the last', () => {
    const work = checker();
    const last = 1000 + 14 * 24 * 3600;
    work.add(2 * PERIOD - 1, header(last, LIMIT));
    expect(() => work.check(2 * PERIOD, header(last + 9000, LIMIT))).toThrow(/require 0x1c00ffff/);
    work.check(2 * PERIOD, header(last + 9000, USUAL));
  });
});
