/** Output scripts of an invented chain: messages, addresses of all kinds, and scripts without an address. */
import { hash } from 'node:crypto';

export interface Rune {
  readonly block: number;
  readonly tx: number;
}

/** An edict. If `output` is the number of outputs, all outputs get the amount. Amount 0 means all remaining runes. */
interface Edict {
  readonly rune: Rune;
  readonly amount: number;
  readonly output: number;
}

function leb128(integer: bigint | number): number[] {
  const bytes: number[] = [];
  let rest = BigInt(integer);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return bytes;
}

/** Length in bytes of the longest push whose opcode is its length. */
const SHORT_PUSH = 75;

/** Returns a script with a message of these integers. `form` selects how the payload is split into pushes. */
export function messageScript(integers: readonly (bigint | number)[], form = 1): Uint8Array {
  const payload = Uint8Array.from(integers.flatMap(leb128));
  const { length } = payload;
  const prefix = Uint8Array.of(0x6a, 0x5d);
  if (form === 0) return Buffer.concat([prefix, Uint8Array.of(78, length & 255, (length >> 8) & 255, length >> 16, 0), payload]);
  if (form === 1 && length > SHORT_PUSH) return Buffer.concat([prefix, Uint8Array.of(77, length & 255, length >> 8), payload]);
  const pushes: Uint8Array[] = [prefix];
  const most = form === 2 ? 20 : SHORT_PUSH;
  for (let at = 0; at < length; at += most) {
    const part = payload.subarray(at, at + most);
    pushes.push(Uint8Array.of(part.length), part);
  }
  return Buffer.concat(pushes);
}

/** Returns the integers that encode edicts, which a message sorts by rune. */
export function edictsOf(edicts: readonly Edict[]): number[] {
  const integers = [0];
  let last: Rune = { block: 0, tx: 0 };
  for (const { rune, amount, output } of [...edicts].sort((a, b) => a.rune.block - b.rune.block || a.rune.tx - b.rune.tx)) {
    integers.push(rune.block - last.block, rune.block === last.block ? rune.tx - last.tx : rune.tx, amount, output);
    last = rune;
  }
  return integers;
}

/** Returns a tapscript that pushes a name, in the same form as an inscription. */
export const tapscriptOf = (name: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.of(32), new Uint8Array(32).fill(7), Uint8Array.of(0xac, 0, 0x63, name.length), name, Uint8Array.of(0x68)]);

/** Returns the script of an address that is different for each number. */
export function addressScript(seed: number, number: number): Uint8Array {
  const key = hash('sha256', `address ${seed} ${number}`, 'buffer');
  const short = key.subarray(0, 20);
  const kind = (key[31] ?? 0) % 20;
  if (kind < 9) return Buffer.concat([Uint8Array.of(0x51, 32), key]);
  if (kind < 14) return Buffer.concat([Uint8Array.of(0, 20), short]);
  if (kind < 16) return Buffer.concat([Uint8Array.of(0x76, 0xa9, 20), short, Uint8Array.of(0x88, 0xac)]);
  if (kind < 18) return Buffer.concat([Uint8Array.of(0xa9, 20), short, Uint8Array.of(0x87)]);
  if (kind < 19) return Buffer.concat([Uint8Array.of(0, 32), key]);
  // A witness program with a version from 2 to 16, which has no rules yet.
  return Buffer.concat([Uint8Array.of(0x50 + 2 + ((key[30] ?? 0) % 15), 2 + ((key[29] ?? 0) % 39)), key, key.subarray(0, 8)]).subarray(
    0,
    4 + ((key[29] ?? 0) % 39),
  );
}

/** Returns a script without an address: a bare key, multisig, or a non-standard script that only miners can include. */
export function scriptWithoutAddress(number: number): Uint8Array {
  const key = hash('sha256', `key ${number}`, 'buffer');
  const pushed = Buffer.concat([Uint8Array.of(33, 2), key]);
  switch (number % 5) {
    case 0:
      return Uint8Array.of(0x51);
    case 1:
      return Buffer.concat([pushed, Uint8Array.of(0xac)]);
    case 2:
      return Buffer.concat([Uint8Array.of(0x51), pushed, pushed, Uint8Array.of(0x52, 0xae)]);
    case 3:
      return new Uint8Array();
    default:
      return Buffer.concat([new Uint8Array(300).fill(0x61), Uint8Array.of(0x51)]);
  }
}

/** Scripts without a valid runes message, for the first output of a transaction. The transaction has one more output. */
export const SPAM: readonly ((rune: Rune, height: number) => Uint8Array)[] = [
  // Other data, and an empty OP_RETURN.
  () => Uint8Array.of(0x6a, 5, 0x68, 0x65, 0x6c, 0x6c, 0x6f),
  () => Uint8Array.of(0x6a),
  // An opcode, a push past the end, a truncated integer, and an integer of 20 bytes.
  () => Uint8Array.of(0x6a, 0x5d, 0x51),
  () => Uint8Array.of(0x6a, 0x5d, 9, 1),
  () => Uint8Array.of(0x6a, 0x5d, 1, 0x80),
  () => Buffer.concat([Uint8Array.of(0x6a, 0x5d, 20), new Uint8Array(19).fill(0xff), Uint8Array.of(0)]),
  // An unknown even tag, also with a mint or an etching, and an unknown odd tag, which is ignored.
  () => messageScript([126, 0]),
  ({ block, tx }) => messageScript([20, block, 20, tx, 126, 0]),
  (_, height) => messageScript([2, 1, 4, BigInt(height) * 26n ** 13n, 126, 0]),
  () => messageScript([2, 1, 6, 1000, 126, 0]),
  () => messageScript([127, 0]),
  // A tag without a value, left-over integers, an edict to an output that does not exist, and an impossible id.
  () => messageScript([20]),
  () => messageScript([0, 1, 1, 1]),
  ({ block, tx }) => messageScript([0, block, tx, 1, 9]),
  () => messageScript([0, 0, 5, 1, 0]),
  // A mint of an unknown rune, an unknown flag, too much supply, and an empty message.
  (_, height) => messageScript([20, height + 5, 20, 1]),
  () => messageScript([2, 8]),
  () => messageScript([2, 3, 6, 2n ** 128n - 1n, 8, 2, 10, 1]),
  () => messageScript([]),
];
