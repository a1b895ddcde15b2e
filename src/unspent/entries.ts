/**
 * Entry of the ledger: an outpoint that a block created or spent. In memory and in files, it has the outpoint, the length of the output in
 * 4 bytes (0 for a spent one), and the output: the number of its balances, rune and amount of each, and the script.
 */
import { copyOf } from '../runes/bytes.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import type { RuneOutput } from '../runes/unspentLedger.ts';

/** Bytes of an entry before its output. */
export const HEAD_BYTES = OUTPOINT_BYTES + 4;

/** Instead of the length: the output was spent, and created by an earlier block in memory. */
export const GONE = 0xffffffff;

/** Bytes of the number of balances, and of a balance: a rune as 8 bytes, and an amount as 16. */
const [COUNT_BYTES, BALANCE_BYTES] = [4, 24];

/** Makes an entry. Without an output, the outpoint was spent. */
export function entryOf(outpoint: Uint8Array, output?: RuneOutput): Buffer {
  const { script, balances } = output ?? { script: [], balances: [] };
  const length = output === undefined ? 0 : COUNT_BYTES + BALANCE_BYTES * balances.length + script.length;
  const entry = Buffer.allocUnsafe(HEAD_BYTES + length);
  entry.set(outpoint);
  let at = entry.writeUInt32LE(length, OUTPOINT_BYTES);
  if (length === 0) return entry;
  at = entry.writeUInt32LE(balances.length, at);
  for (const { rune, amount } of balances) {
    at = entry.writeDoubleLE(rune, at);
    at = entry.writeBigUInt64LE(BigInt.asUintN(64, amount), at);
    at = entry.writeBigUInt64LE(amount >> 64n, at);
  }
  entry.set(script, at);
  return entry;
}

/** Decodes the output of the entry at `at`, `'spent'` if it has none. Copies the script, so that the result may be kept. */
export function outputAt(bytes: Buffer, at: number): RuneOutput | 'spent' {
  const end = endOf(bytes, at);
  if (end === at + HEAD_BYTES) return 'spent';
  const first = at + HEAD_BYTES + COUNT_BYTES;
  const balances = Array.from({ length: bytes.readUInt32LE(at + HEAD_BYTES) }, (_, i) => {
    const place = first + BALANCE_BYTES * i;
    const high = bytes.readBigUInt64LE(place + 16);
    return { rune: bytes.readDoubleLE(place), amount: bytes.readBigUInt64LE(place + 8) + (high === 0n ? 0n : high << 64n) };
  });
  return { script: copyOf(bytes, first + BALANCE_BYTES * balances.length, end), balances };
}

/** The offset after the entry at `at`. */
export function endOf(bytes: Buffer, at: number): number {
  const length = bytes.readUInt32LE(at + OUTPOINT_BYTES);
  return at + HEAD_BYTES + (length === GONE ? 0 : length);
}

/** Compares the outpoints at two offsets. Returns a negative number, 0 or a positive number, as for sort(). */
export const compareAt = (a: Buffer, from: number, b: Buffer, at: number): number =>
  a.compare(b, at, at + OUTPOINT_BYTES, from, from + OUTPOINT_BYTES);
