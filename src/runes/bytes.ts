/** Reads hashes, hex and integers in Bitcoin's formats. */

const HASH_BYTES = 32;

/** Computes the double SHA-256 of `bytes`. Callers pass the fastest implementation of their platform. */
export type Hash256 = (bytes: Uint8Array) => Uint8Array;

/** Copies bytes. Replaces `slice`, which is forbidden: it copies a Uint8Array, but returns a view of a Node Buffer of the same type. */
export function copyOf(bytes: Uint8Array, from = 0, to = bytes.length): Uint8Array {
  return new Uint8Array(bytes.subarray(from, to));
}

const DIGITS = Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
const codes = new Array<number>(64).fill(0);

/**
 * Returns the 32 bytes at `at` as Bitcoin displays hashes: last byte first, in lower-case hex. Creates the string in one call, because
 * engines store a string of many concatenations as a tree, which takes ten times the memory.
 */
export function hashText(bytes: Uint8Array, at = 0): string {
  for (let i = 0; i < 32; i++) {
    const byte = bytes[at + 31 - i] ?? 0;
    codes[2 * i] = DIGITS[byte >> 4] ?? 0;
    codes[2 * i + 1] = DIGITS[byte & 15] ?? 0;
  }
  return String.fromCharCode.apply(null, codes);
}

/** Reads 4 bytes, least significant first. The caller must check the bounds. */
export const uint32At = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)) >>> 0;

/** Returns the outpoint at `at` (36 bytes) as `txid:vout`. */
export const outpointText = (bytes: Uint8Array, at = 0): string => `${hashText(bytes, at)}:${uint32At(bytes, at + 32)}`;

/** Returns the 36 bytes of an outpoint `txid:vout`, whose txid is in lower-case hex. */
export function outpointBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(HASH_BYTES + 4);
  for (let i = 0; i < HASH_BYTES; i++) bytes[HASH_BYTES - 1 - i] = 16 * digitAt(text, 2 * i) + digitAt(text, 2 * i + 1);
  let vout = Number(text.slice(2 * HASH_BYTES + 1));
  for (let i = HASH_BYTES; i < HASH_BYTES + 4; i++, vout = Math.floor(vout / 256)) bytes[i] = vout % 256;
  return bytes;
}

function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 0x3a ? code - 0x30 : code - 0x57;
}

/** True if `length` bytes at the two offsets are equal. */
export function sameBytes(a: Uint8Array, from: number, b: Uint8Array, at: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[from + i] !== b[at + i]) return false;
  return true;
}
