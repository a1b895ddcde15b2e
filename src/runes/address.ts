/** Converts output scripts to addresses, and back. */
import type { Hash256 } from './bytes.ts';
import type { Network } from './networks.ts';

const startsWith = (script: Uint8Array, ...bytes: number[]): boolean => bytes.every((byte, i) => script[i] === byte);

const isPubkeyHash = (script: Uint8Array): boolean =>
  script.length === 25 && startsWith(script, 0x76, 0xa9, 20) && script[23] === 0x88 && script[24] === 0xac;

const isScriptHash = (script: Uint8Array): boolean => script.length === 23 && startsWith(script, 0xa9, 20) && script[22] === 0x87;

/** Returns the witness version of a script. Returns -1 unless the script is a witness program that has an address. */
function witnessVersion(script: Uint8Array): number {
  // Does not destructure `script`, because that reads a typed array by an iterator, which takes ten times as long.
  const opcode = script[0] ?? 0xff;
  const length = script[1] ?? 0;
  if (length !== script.length - 2 || length < 2 || length > 40) return -1;
  if (opcode === 0) return length === 20 || length === 32 ? 0 : -1;
  return opcode >= 0x51 && opcode <= 0x60 ? opcode - 0x50 : -1;
}

/** True for scripts that have an address. */
export const hasAddress = (script: Uint8Array): boolean => witnessVersion(script) >= 0 || isPubkeyHash(script) || isScriptHash(script);

const LETTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const CODES = Array.from(LETTERS, (letter) => letter.charCodeAt(0));

/** Values to XOR into bech32's checksum in each step (BIP 173). Index: the 5 high bits that the step shifts out. */
const CHECKSUM_STEPS = Int32Array.from({ length: 32 }, (_, top) =>
  [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3].reduce((sum, part, bit) => ((top >> bit) & 1 ? sum ^ part : sum), 0),
);

const checksumWith = (sum: number, word: number): number => ((sum & 0x1ffffff) << 5) ^ word ^ (CHECKSUM_STEPS[sum >>> 25] ?? 0);

/** Returns a bech32 address. Written for speed, because a pull needs thousands of addresses per block. */
function witnessAddress(prefix: string, version: number, script: Uint8Array): string {
  let sum = 1;
  for (let i = 0; i < prefix.length; i++) sum = checksumWith(sum, prefix.charCodeAt(i) >> 5);
  sum = checksumWith(sum, 0);
  for (let i = 0; i < prefix.length; i++) sum = checksumWith(sum, prefix.charCodeAt(i) & 31);
  sum = checksumWith(sum, version);
  // Words of 5 bits: one for the version, then the program, then six for the checksum.
  const codes = new Array<number>(1 + Math.ceil(((script.length - 2) * 8) / 5) + 6);
  codes[0] = CODES[version] ?? 0;
  let [at, rest, bits] = [1, 0, 0];
  for (let i = 2; i < script.length; i++) {
    rest = ((rest << 8) | (script[i] ?? 0)) & 0xfff;
    bits += 8;
    // The last word is padded with zero bits.
    if (i === script.length - 1) for (; bits % 5 !== 0; bits++) rest <<= 1;
    for (; bits >= 5; bits -= 5) {
      const word = (rest >> (bits - 5)) & 31;
      sum = checksumWith(sum, word);
      codes[at++] = CODES[word] ?? 0;
    }
  }
  for (let i = 0; i < 6; i++) sum = checksumWith(sum, 0);
  // The checksum of a valid address ends with bech32's constant for version 0, and with bech32m's (BIP 350) for later ones.
  sum ^= version === 0 ? 1 : 0x2bc830a3;
  for (let shift = 25; shift >= 0; shift -= 5) codes[at++] = CODES[(sum >> shift) & 31] ?? 0;
  return `${prefix}1${String.fromCharCode.apply(null, codes)}`;
}

/** Returns the address of a script, or null if the script has none (public keys, bare multisig and others). */
export function addressOf(script: Uint8Array, network: Network, hash256: Hash256): string | null {
  const version = witnessVersion(script);
  if (version >= 0) return witnessAddress(network.bech32, version, script);
  if (isPubkeyHash(script)) return base58check(network.p2pkh, script.subarray(3, 23), hash256);
  if (isScriptHash(script)) return base58check(network.p2sh, script.subarray(2, 22), hash256);
  return null;
}

const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** Size of what a base58 address encodes: a version, a hash of 20 bytes and a checksum. */
const BASE58_BYTES = 25;

function base58check(version: number, hash: Uint8Array, hash256: Hash256): string {
  const bytes = new Uint8Array(BASE58_BYTES);
  bytes[0] = version;
  bytes.set(hash, 1);
  bytes.set(hash256(bytes.subarray(0, 21)).subarray(0, 4), 21);
  const view = new DataView(bytes.buffer);
  let text = '';
  let value = BigInt(version);
  for (let at = 1; at < BASE58_BYTES; at += 8) value = (value << 64n) | view.getBigUint64(at);
  for (; value > 0n; value /= 58n) text = `${DIGITS[Number(value % 58n)]}${text}`;
  // A digit 1 stands for each zero byte at the start.
  return `${'1'.repeat(bytes.findIndex((byte) => byte !== 0))}${text}`;
}

/** Returns the script of an address; undefined for text that is not an address of the network. */
export function scriptOfAddress(address: string, network: Network, hash256: Hash256): Uint8Array | undefined {
  const prefix = `${network.bech32}1`;
  const script = address.startsWith(prefix) ? witnessScript(address, prefix.length) : hashScript(address, network);
  // witnessScript and hashScript check neither version nor checksum. If one is wrong, the script has another address.
  return script !== undefined && addressOf(script, network, hash256) === address ? script : undefined;
}

/** Values of bech32's letters by their character codes; 0 for all other characters. */
const VALUES = Uint8Array.from({ length: 128 }, (_, code) => Math.max(LETTERS.indexOf(String.fromCharCode(code)), 0));

/** Returns the script of a bech32 address. At `at` is the witness version. A program and a checksum of 6 characters follow. */
function witnessScript(address: string, at: number): Uint8Array | undefined {
  const end = address.length - 6;
  const length = Math.floor(((end - at - 1) * 5) / 8);
  if (length < 2 || length > 40) return undefined;
  const script = new Uint8Array(2 + length);
  const version = VALUES[address.charCodeAt(at)] ?? 0;
  script[0] = version === 0 ? 0 : 0x50 + version;
  script[1] = length;
  let [next, rest, bits] = [2, 0, 0];
  for (let i = at + 1; i < end; i++) {
    rest = ((rest << 5) | (VALUES[address.charCodeAt(i)] ?? 0)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    script[next++] = rest >> bits;
  }
  return script;
}

function hashScript(address: string, { p2pkh }: Network): Uint8Array | undefined {
  const digits = Array.from(address, (letter) => DIGITS.indexOf(letter));
  // The largest address has 35 digits.
  if (digits.includes(-1) || digits.length > 35) return undefined;
  const value = digits.reduce((sum, digit) => sum * 58n + BigInt(digit), 0n);
  const [version, ...bytes] = Array.from({ length: BASE58_BYTES }, (_, i) => Number((value >> BigInt(8 * (BASE58_BYTES - 1 - i))) & 0xffn));
  const hash = bytes.slice(0, 20);
  return Uint8Array.from(version === p2pkh ? [0x76, 0xa9, 20, ...hash, 0x88, 0xac] : [0xa9, 20, ...hash, 0x87]);
}
