/** Generates runes messages, and decodes them with ord's own decoder (compiled to WebAssembly). */
import { Runestone } from '@saturnbtcio/ordinals-lib';
import { decodeMessage, type Message } from '../../src/runes/runestone.ts';
import { isMessage } from '../../src/runes/script.ts';

const EDGES = [7, 14, 20, 27, 31, 32, 63, 64, 127, 128].flatMap((bits) => [2n ** BigInt(bits) - 1n, 2n ** BigInt(bits)]).slice(0, -1);
const TAGS = [0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 20, 22, 22, 24, 126, 127, 128, 129].map(BigInt);

type Random = (below: number) => number;

const pick = <T>(random: Random, values: readonly T[]): T => values[random(values.length)] as T;

/** Returns a small value, or a value near the limit of a field. */
const value = (random: Random): bigint => {
  const kind = random(10);
  if (kind < 6) return BigInt(random(9));
  if (kind === 6) return pick(random, EDGES);
  if (kind === 7) return pick(random, [37n, 38n, 39n, 0xd7ffn, 0xd800n, 0xdfffn, 0xe000n, 0x10ffffn, 0x110000n, 0x07ffffffn, 0x08000000n]);
  return BigInt(random(2 ** 31)) << BigInt(random(97));
};

/** Encodes a LEB128 integer. The result may have redundant zero groups, be too long, or be truncated. */
function varint(random: Random, integer: bigint): number[] {
  const bytes: number[] = [];
  for (let rest = integer; bytes.length === 0 || rest > 0n; rest >>= 7n) bytes.push(Number(rest & 0x7fn));
  if (random(200) === 0) bytes.push(...new Array<number>(random(20 - Math.min(bytes.length, 19) + 1)).fill(0));
  if (random(400) === 0) bytes.push(random(128));
  return bytes.map((byte, i) => (i < bytes.length - 1 || random(2000) === 0 ? byte | 0x80 : byte));
}

/** Encodes a push of the data. The opcode is not always the shortest. */
function push(random: Random, data: readonly number[]): number[] {
  const { length } = data;
  const form = random(12);
  if (length > 255 || form === 0) return [77, length & 0xff, length >> 8, ...data];
  if (form === 1) return [78, length, 0, 0, 0, ...data];
  return length > 75 || form === 2 ? [76, length, ...data] : [length, ...data];
}

const FIELDS = [1, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18].map(BigInt);

/** Returns fields and edicts of a message that is mostly well formed. */
function orderly(random: Random, outputs: number): bigint[] {
  const flags = random(8);
  const integers = random(3) === 0 ? [] : [2n, BigInt(random(30) === 0 ? flags : flags & 1 ? flags : 0)];
  for (const tag of FIELDS) {
    const fits = tag % 2n === 1n || (flags & 1 && integers.length > 0 && (tag <= 6n || flags & 2));
    if (random(3) === 0 && (fits || random(100) === 0)) integers.push(tag, value(random));
  }
  if (random(4) === 0) integers.push(20n, BigInt(1 + random(9)), 20n, random(3) === 0 ? value(random) : BigInt(random(3)));
  if (random(4) === 0) integers.push(22n, BigInt(random(outputs + (random(10) === 0 ? 1 : 0))));
  if (random(2) === 0) return integers;
  integers.push(0n);
  for (let edicts = random(5); edicts > 0; edicts--) {
    integers.push(random(9) === 0 ? value(random) : BigInt(random(3)), BigInt(random(2)), value(random), BigInt(random(outputs + 1)));
  }
  return integers;
}

/** Returns random tags and values. */
function disorderly(random: Random): bigint[] {
  const integers: bigint[] = [];
  for (let fields = random(7); fields > 0; fields--) {
    const tag = random(20) === 0 ? value(random) : pick(random, TAGS);
    if (tag === 0n) break;
    integers.push(tag, tag === 2n && random(4) > 0 ? BigInt(random(8)) : value(random));
    if (tag === 20n && random(4) > 0) integers.push(20n, value(random));
  }
  if (random(2) === 0) {
    integers.push(0n);
    for (let edicts = random(4); edicts > 0; edicts--) integers.push(value(random), value(random), value(random), BigInt(random(5)));
    if (random(10) === 0) integers.pop();
  } else if (random(20) === 0) integers.push(value(random));
  return integers;
}

/** Returns the scripts of a transaction's outputs, most of them with a message. */
export function generateOutputs(random: Random): Uint8Array[] {
  const others = () => pick(random, [[], [0x6a], [0x51, 2, 0x4e, 0x73], [0x6a, 1, 0x5d], [4]]);
  const scripts = Array.from({ length: random(4) }, others);
  // Sometimes adds a second message, before or after the main message.
  if (random(12) === 0) scripts.push([0x6a, 0x5d]);
  const integers = random(2) === 0 ? orderly(random, scripts.length + 1) : disorderly(random);
  const payload = integers.flatMap((integer) => varint(random, integer));
  const script = [0x6a, 0x5d];
  for (let at = 0; at < payload.length; ) {
    const length = random(3) === 0 ? 1 + random(payload.length - at) : Math.min(payload.length - at, 520);
    script.push(...push(random, payload.slice(at, at + length)));
    at += length;
  }
  if (random(30) === 0) script.splice(2 + random(script.length - 1), 0, random(256));
  if (random(30) === 0) script.length = random(script.length + 1);
  if (random(30) === 0) script[random(script.length)] = random(256);

  scripts.splice(random(scripts.length + 1), 0, script);
  return scripts.map((bytes) => Uint8Array.from(bytes));
}

/** Decodes with this program. Returns null without a message, `cenotaph`, or the fields of the message. */
export function decodedHere(outputs: readonly Uint8Array[]): unknown {
  const script = outputs.find((bytes) => isMessage(bytes, 0, bytes.length));
  return script ? told(decodeMessage(script, outputs.length)) : null;
}

function told(message: Message): unknown {
  if (message.kind === 'cenotaph') return null;
  const { edicts, etching, mint, pointer } = message;
  return [
    edicts.map(({ id, amount, output }) => [id.block, Number(id.tx), amount, output]),
    mint && [mint.block, Number(mint.tx)],
    pointer,
    etching && [
      etching.rune,
      etching.divisibility,
      etching.premine,
      etching.spacers,
      etching.symbol,
      etching.turbo,
      etching.terms && [
        etching.terms.amount,
        etching.terms.cap,
        // The library uses -1 for a missing value.
        [etching.terms.heightStart ?? -1n, etching.terms.heightEnd ?? -1n],
        [etching.terms.offsetStart ?? -1n, etching.terms.offsetEnd ?? -1n],
      ],
    ],
  ];
}

const HEAD = Buffer.from(`0200000001${'00'.repeat(36)}00ffffffff`, 'hex');

/** Returns a transaction in hex with one input and these output scripts, of at most 65,535 bytes each. */
function transactionHex(outputs: readonly Uint8Array[]): string {
  const scripts = outputs.flatMap((script) => [
    Buffer.alloc(8),
    Uint8Array.from(script.length < 0xfd ? [script.length] : [0xfd, script.length & 0xff, script.length >> 8]),
    script,
  ]);
  return Buffer.concat([HEAD, Uint8Array.from([outputs.length]), ...scripts, Buffer.alloc(4)]).toString('hex');
}

/**
 * Decodes with ord's decoder. The result has the form of `decodedHere`, but the decoder does not distinguish a cenotaph from a missing
 * message.
 */
export function decodedByOrd(outputs: readonly Uint8Array[]): unknown {
  const read = Runestone.decipher_transaction(transactionHex(outputs));
  if (!read) return null;
  const { edicts, etching, mint, pointer } = read;
  const terms = etching?.terms;
  const rune = etching?.rune;
  const ids = edicts.map(({ id }) => id);
  const told = [
    edicts.map(({ amount, output }, i) => [ids[i]?.block, ids[i]?.tx, amount, output]),
    mint && [mint.block, mint.tx],
    pointer,
    etching && [
      rune?.rune,
      etching.divisibility,
      etching.premine,
      etching.spacers,
      etching.symbol,
      etching.turbo,
      terms && [terms.amount, terms.cap, [...terms.height], [...terms.offset]],
    ],
  ];
  for (const object of [...edicts, ...ids, mint, terms, rune, etching, read]) object?.free();
  return told;
}
