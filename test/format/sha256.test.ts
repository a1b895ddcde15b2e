/** Tests SHA-256 and UTF-8 for platforms without synchronous functions. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256, utf8Of } from '../../src/format/sha256.ts';

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
