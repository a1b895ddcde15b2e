/** Tests the format of lists of activity (docs/archive.md): keys, heads, names and pointers. */

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArchiveError } from '../../src/format/archiveError.ts';
import type { Archive } from '../../src/format/archiveReader.ts';
import { sha256, utf8Of } from '../../src/format/sha256.ts';
import {
  findList,
  headEntries,
  headOf,
  LISTED,
  listKeyOf,
  MOST_IN_ENTRY,
  POINTER_BYTES,
  POINTERS_PER_BLOCK,
  pointerOffset,
  readPointer,
  writePointer,
} from '../../src/lists/activity.ts';

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('SHA-256', () => {
  // Examples from FIPS 180-4.
  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    ['abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq', '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1'],
  ])('of %j has the published value', (text, hash) => expect(hexOf(sha256(utf8Of(text)))).toBe(hash));

  it("equals the platform's implementation for bytes of any length", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => hexOf(sha256(bytes)) === createHash('sha256').update(bytes).digest('hex')),
    );
  });

  it('encodes texts as UTF-8, like the platform', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => hexOf(utf8Of(text)) === Buffer.from(text).toString('hex')));
    expect(hexOf(utf8Of('a\ud800b'))).toBe(Buffer.from('a\ud800b').toString('hex'));
  });
});

describe('a key', () => {
  it('is the first 72 bits of the hash', () => {
    const { upper, lower } = listKeyOf(LISTED.both('840000:3', 'bc1p'));
    const hash = createHash('sha256').update('p:840000:3:bc1p').digest('hex');
    expect(upper.toString(16).padStart(12, '0') + lower.toString(16).padStart(6, '0')).toBe(hash.slice(0, 18));
  });

  it('differs between kinds of lists', () => {
    expect(new Set([LISTED.rune('1:0'), LISTED.address('1:0'), LISTED.both('1:0', '1:0')]).size).toBe(3);
  });
});

describe('heads', () => {
  const key = { upper: 5, lower: 7 };

  it('of a long list are several entries, which are read as one', () => {
    const head = { position: 9, count: 2 * MOST_IN_ENTRY + 1 };
    const entries = headEntries(key, head);
    expect(entries.map(({ count }) => count)).toEqual([MOST_IN_ENTRY, MOST_IN_ENTRY, 1]);
    expect(headOf(entries, key)).toEqual(head);
  });

  it('of other keys with the same first bits are skipped', () => {
    const others = [...headEntries({ upper: 5, lower: 6 }, { position: 0, count: 3 }), ...headEntries(key, { position: 3, count: 1 })];
    expect(headOf(others, key)).toEqual({ position: 3, count: 1 });
    expect(headOf(others, { upper: 5, lower: 8 })).toBeUndefined();
  });

  it('with a gap are damaged', () => {
    const entries = [...headEntries(key, { position: 0, count: 3 }), ...headEntries(key, { position: 4, count: 1 })];
    expect(() => headOf(entries, key)).toThrow(ArchiveError);
  });
});

describe('a list', () => {
  it('has at most as many records as its levels have pointers', async () => {
    const table = { first: 0, last: 9, counts: [5], files: [] };
    const key = listKeyOf(LISTED.rune('1:0'));
    const found = (position: number, count: number) => {
      const root = { lists: { activity: [{ begin: 0, heads: table, pointers: table }] } };
      const archive = { root, find: async () => headEntries(key, { position, count }) } as unknown as Archive;
      return findList(archive, LISTED.rune('1:0'));
    };
    expect((await found(2, 3)).total).toBe(3);
    await expect(found(2, 4)).rejects.toThrow('a list of the archive ends after the last pointer of its level');
  });
});

describe('a pointer', () => {
  it('is read as written', () => {
    const view = new DataView(new ArrayBuffer(POINTER_BYTES));
    const number = (bits: number) => fc.integer({ min: 0, max: 2 ** bits - 1 });
    fc.assert(
      fc.property(fc.maxSafeNat(), number(32), number(24), (big, length, record) => {
        const position = big % 2 ** 40;
        writePointer(view, 0, position, length, record);
        expect(readPointer(view, 0)).toEqual({ position, length, record });
      }),
    );
  });

  it('is in a block of 4,096 bytes', () => {
    expect([0, 1, POINTERS_PER_BLOCK - 1, POINTERS_PER_BLOCK].map(pointerOffset)).toEqual([0, 12, 4080, 4096]);
  });
});
