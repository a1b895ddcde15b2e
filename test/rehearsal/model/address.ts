import { createHash } from 'node:crypto';

/**
 * Prefixes of a network's addresses: the text prefix of bech32 addresses, and the version bytes of base58 addresses (for hashes of keys,
 * and for hashes of scripts).
 */
export interface AddressForm {
  readonly hrp: string;
  readonly key: number;
  readonly script: number;
}

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

/** Returns the address of an output script. Returns null for a script that has no address, such as a bare key or bare multisig. */
export function addressOf(script: Buffer, form: AddressForm): string | null {
  const hex = script.toString('hex', 0, 3);
  const { length } = script;
  if (length === 25 && hex === '76a914' && script.readUInt16BE(23) === 0x88ac) return base58check(form.key, script.subarray(3, 23));
  if (length === 23 && hex.startsWith('a914') && script[22] === 0x87) return base58check(form.script, script.subarray(2, 22));
  const opcode = script[0] ?? 0xff;
  if (length < 4 || length > 42 || script[1] !== length - 2) return null;
  if (opcode === 0) return length === 22 || length === 34 ? bech32(form.hrp, 0, script.subarray(2)) : null;
  return opcode >= 0x51 && opcode <= 0x60 ? bech32(form.hrp, opcode - 0x50, script.subarray(2)) : null;
}

/** Encodes a witness program: version 0 with the bech32 checksum, later versions with the bech32m checksum. */
function bech32(hrp: string, version: number, program: Buffer): string {
  const words = [version];
  let bits = 0;
  let value = 0;
  for (const byte of program) {
    value = ((value << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) words.push((value >> (bits - 5)) & 31);
  }
  if (bits > 0) words.push((value << (5 - bits)) & 31);
  const codes = [...Buffer.from(hrp)];
  const sum = polymod([...codes.map((c) => c >> 5), 0, ...codes.map((c) => c & 31), ...words, 0, 0, 0, 0, 0, 0]);
  const checksum = sum ^ (version === 0 ? 1 : 0x2bc830a3);
  for (let shift = 25; shift >= 0; shift -= 5) words.push((checksum >> shift) & 31);
  return `${hrp}1${words.map((word) => BECH32.charAt(word)).join('')}`;
}

function polymod(words: number[]): number {
  let sum = 1;
  for (const word of words) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ word;
    for (const [i, factor] of GENERATOR.entries()) if ((top >> i) & 1) sum ^= factor;
  }
  return sum;
}

function base58check(version: number, hash: Buffer): string {
  const payload = Buffer.concat([Buffer.of(version), hash]);
  const inner = createHash('sha256').update(payload).digest();
  const bytes = Buffer.concat([payload, createHash('sha256').update(inner).digest().subarray(0, 4)]);
  let text = '';
  for (let n = BigInt(`0x${bytes.toString('hex')}`); n > 0n; n /= 58n) text = BASE58.charAt(Number(n % 58n)) + text;
  // Base58 encodes each leading zero byte as the digit 1.
  for (const byte of bytes) {
    if (byte !== 0) break;
    text = `1${text}`;
  }
  return text;
}
