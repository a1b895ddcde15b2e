/** SHA-256 (FIPS 180-4) of short texts, because no synchronous SHA-256 function exists on all platforms that host a mirror. */

/** The first 64 prime numbers. */
const PRIMES = Array.from({ length: 312 }, (_, n) => n).filter((n) => n > 1 && [2, 3, 5, 7, 11, 13, 17].every((p) => n === p || n % p > 0));

/** Returns the first 32 bits of the fraction of each number. */
const fractions = (numbers: readonly number[]): Uint32Array => Uint32Array.from(numbers, (number) => (number % 1) * 2 ** 32);

/** State before the first block, and constants of the rounds. */
const [START, ROUNDS] = [fractions(PRIMES.slice(0, 8).map(Math.sqrt)), fractions(PRIMES.map(Math.cbrt))];

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

/** Returns the SHA-256 of less than 512 MB: 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  // Pads the bytes to blocks of 64 bytes: a 1 bit, zeros, and the number of bits before the padding.
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  const state = Uint32Array.from(START);
  const words = new Uint32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i += 1) words[i] = view.getUint32(at + i * 4);
    for (let i = 16; i < 64; i += 1) {
      const [a = 0, b = 0] = [words[i - 15], words[i - 2]];
      const low = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
      const high = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
      words[i] = (words[i - 16] ?? 0) + low + (words[i - 7] ?? 0) + high;
    }
    compress(state, words);
  }
  const hash = new DataView(new ArrayBuffer(32));
  for (const [i, word] of state.entries()) hash.setUint32(i * 4, word);
  return new Uint8Array(hash.buffer);
}

/** Mixes the words of a block into the state. */
function compress(state: Uint32Array, words: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i += 1) {
    const choice = (e & f) ^ (~e & g);
    const first = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (ROUNDS[i] ?? 0) + (words[i] ?? 0)) | 0;
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] ?? 0) + word;
}

export const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** All platforms have it. The language alone, with which this folder is checked, does not declare it. */
declare const TextEncoder: new () => { encode(text: string): Uint8Array };

/** Encodes a text as UTF-8. A lone surrogate becomes U+FFFD. */
export const utf8Of = (text: string): Uint8Array => new TextEncoder().encode(text);
