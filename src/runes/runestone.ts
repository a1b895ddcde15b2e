/** Decodes the runes message in an output script: a runestone, or a cenotaph with the flaw that makes it malformed. */
import { joinBytes } from '../joinBytes.ts';
import { instructionAt, LAST_PUSH } from './script.ts';

export const MAX_U128 = 2n ** 128n - 1n;
const MAX_U64 = 2n ** 64n - 1n;
const MAX_U32 = 2n ** 32n - 1n;
const MAX_SPACERS = 0x07ffffffn;
const MAX_DIVISIBILITY = 38n;

/** Reasons why a message is malformed, with ord's names. */
type Flaw =
  | 'EdictOutput'
  | 'EdictRuneId'
  | 'InvalidScript'
  | 'Opcode'
  | 'SupplyOverflow'
  | 'TrailingIntegers'
  | 'TruncatedField'
  | 'UnrecognizedEvenTag'
  | 'UnrecognizedFlag'
  | 'Varint';

/** Id of a rune in a message. The rune need not exist. */
export interface MessageId {
  readonly block: bigint;
  readonly tx: bigint;
}

/**
 * Moves an amount of a rune to an output. Amount 0 means all that is left. If `output` is the number of outputs, all outputs without
 * OP_RETURN receive the rune.
 */
interface Edict {
  readonly id: MessageId;
  readonly amount: bigint;
  readonly output: number;
}

/** Terms of an open mint. Heights are absolute, offsets count from the etching. */
export interface Terms {
  readonly amount: bigint | undefined;
  readonly cap: bigint | undefined;
  readonly heightStart: bigint | undefined;
  readonly heightEnd: bigint | undefined;
  readonly offsetStart: bigint | undefined;
  readonly offsetEnd: bigint | undefined;
}

export interface Etching {
  /** Name as a number. Without a name, the rune gets a reserved name. */
  readonly rune: bigint | undefined;
  readonly divisibility: number | undefined;
  readonly premine: bigint | undefined;
  readonly spacers: number | undefined;
  readonly symbol: string | undefined;
  readonly terms: Terms | undefined;
  readonly turbo: boolean;
}

interface Runestone {
  readonly kind: 'runestone';
  readonly edicts: readonly Edict[];
  readonly etching: Etching | undefined;
  readonly mint: MessageId | undefined;
  /** Index of the output that receives all runes that no edict moves. */
  readonly pointer: number | undefined;
}

/** Malformed message. It burns the runes of its transaction, but still mints and etches. */
interface Cenotaph {
  readonly kind: 'cenotaph';
  readonly flaw: Flaw;
  readonly mint: MessageId | undefined;
  /** Name of the rune that the message etches, as a number. */
  readonly etching: bigint | undefined;
}

export type Message = Runestone | Cenotaph;

/** Tags of fields. Tag 0 begins the edicts. */
const TAG = {
  divisibility: 1,
  flags: 2,
  spacers: 3,
  rune: 4,
  symbol: 5,
  premine: 6,
  cap: 8,
  amount: 10,
  heightStart: 12,
  heightEnd: 14,
  offsetStart: 16,
  offsetEnd: 18,
  mint: 20,
  pointer: 22,
} as const;
const LARGEST_TAG = 22n;

const FLAG = { etching: 1n, terms: 2n, turbo: 4n } as const;

const cenotaph = (flaw: Flaw, mint?: MessageId, etching?: bigint): Cenotaph => ({ kind: 'cenotaph', flaw, mint, etching });

/** Decodes the message in `script`, which begins with OP_RETURN and OP_13. `outputs` is the number of outputs. */
export function decodeMessage(script: Uint8Array, outputs: number): Message {
  const payload = payloadOf(script);
  if (typeof payload === 'string') return cenotaph(payload);
  const integers = integersOf(payload);
  if (!integers) return cenotaph('Varint');

  const { fields, edicts, ...read } = readFields(integers, outputs);
  const flags = fields.take(TAG.flags, any) ?? 0n;
  const etches = (flags & FLAG.etching) !== 0n;
  // The other flags are only valid in an etching.
  const unknownFlags = flags & ~(etches ? FLAG.etching | FLAG.terms | FLAG.turbo : 0n);
  const etching: Etching | undefined = etches
    ? {
        divisibility: fields.take(TAG.divisibility, (value) => (value <= MAX_DIVISIBILITY ? Number(value) : undefined)),
        premine: fields.take(TAG.premine, any),
        rune: fields.take(TAG.rune, any),
        spacers: fields.take(TAG.spacers, (value) => (value <= MAX_SPACERS ? Number(value) : undefined)),
        symbol: fields.take(TAG.symbol, character),
        terms:
          (flags & FLAG.terms) !== 0n
            ? {
                cap: fields.take(TAG.cap, any),
                heightStart: fields.take(TAG.heightStart, u64),
                heightEnd: fields.take(TAG.heightEnd, u64),
                amount: fields.take(TAG.amount, any),
                offsetStart: fields.take(TAG.offsetStart, u64),
                offsetEnd: fields.take(TAG.offsetEnd, u64),
              }
            : undefined,
        turbo: (flags & FLAG.turbo) !== 0n,
      }
    : undefined;
  const mint = fields.take(TAG.mint, idOf, 2);
  const pointer = fields.take(TAG.pointer, (value) => (value < BigInt(outputs) ? Number(value) : undefined));

  const flaw =
    read.flaw ??
    (etching && supply(etching) > MAX_U128 ? 'SupplyOverflow' : undefined) ??
    (unknownFlags !== 0n ? 'UnrecognizedFlag' : undefined) ??
    (fields.hasEvenTag() ? 'UnrecognizedEvenTag' : undefined);
  return flaw ? cenotaph(flaw, mint, etching?.rune) : { kind: 'runestone', edicts, etching, mint, pointer };
}

const any = (value: bigint): bigint => value;
const u64 = (value: bigint): bigint | undefined => (value <= MAX_U64 ? value : undefined);

/** Returns the character of a code point. Undefined for surrogates and for values above U+10FFFF. */
const character = (value: bigint): string | undefined =>
  value > 0x10ffffn || (value >= 0xd800n && value < 0xe000n) ? undefined : String.fromCodePoint(Number(value));

const idOf = (block: bigint, tx: bigint): MessageId | undefined =>
  block > MAX_U64 || tx > MAX_U32 || (block === 0n && tx > 0n) ? undefined : { block, tx };

const supply = ({ premine = 0n, terms }: Etching): bigint => premine + (terms?.cap ?? 0n) * (terms?.amount ?? 0n);

/** Returns the joined data of all pushes after the first two opcodes, or the flaw of the script. */
function payloadOf(script: Uint8Array): Uint8Array | Flaw {
  const parts: Uint8Array[] = [];
  for (let at = 2; at < script.length; ) {
    const instruction = instructionAt(script, at);
    if (!instruction) return 'InvalidScript';
    if (instruction.opcode > LAST_PUSH) return 'Opcode';
    parts.push(script.subarray(instruction.from, instruction.to));
    at = instruction.to;
  }
  return joinBytes(parts);
}

/** Integers of up to this many bytes are computed as numbers, because bigints are slow. Most integers are short. */
const PLAIN_BYTES = 7;

/** Decodes LEB128 integers of at most 128 bits. Returns undefined if one is too long, too large or not terminated. */
function integersOf(payload: Uint8Array): bigint[] | undefined {
  const integers: bigint[] = [];
  for (let at = 0; at < payload.length; ) {
    let plain = 0;
    let large = 0n;
    for (let i = 0; ; i++) {
      const byte = payload[at++];
      if (byte === undefined || i > 18 || (i === 18 && (byte & 0x7c) !== 0)) return undefined;
      if (i < PLAIN_BYTES) plain += (byte & 0x7f) * 2 ** (7 * i);
      else large |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) break;
    }
    integers.push(large === 0n ? BigInt(plain) : BigInt(plain) | large);
  }
  return integers;
}

/** Values of a message by tag. `take` removes the values that it returns, so the remaining values are unused. */
class Fields {
  readonly #values = new Map<number, bigint[]>();
  #unknownEvenTag = false;

  add(tag: bigint, value: bigint): void {
    if (tag > LARGEST_TAG) {
      this.#unknownEvenTag ||= (tag & 1n) === 0n;
      return;
    }
    const values = this.#values.get(Number(tag));
    if (values) values.push(value);
    else this.#values.set(Number(tag), [value]);
  }

  /**
   * Removes the first `count` values (1 or 2) of a tag, and returns what `accept` makes of them. Values that are too few, or that `accept`
   * rejects, stay, so that an even tag counts as unrecognized. Then returns undefined.
   */
  take<T>(tag: number, accept: (first: bigint, second: bigint) => T | undefined, count = 1): T | undefined {
    const values = this.#values.get(tag) ?? [];
    const [first, second = 0n] = values;
    const taken = first === undefined || values.length < count ? undefined : accept(first, second);
    if (taken === undefined) return undefined;
    values.splice(0, count);
    if (values.length === 0) this.#values.delete(tag);
    return taken;
  }

  /** True if an even tag has a value that was not taken. */
  hasEvenTag(): boolean {
    return this.#unknownEvenTag || [...this.#values.keys()].some((tag) => tag % 2 === 0);
  }
}

function readFields(integers: readonly bigint[], outputs: number): { fields: Fields; edicts: Edict[]; flaw: Flaw | undefined } {
  const fields = new Fields();
  for (let i = 0; i < integers.length; i += 2) {
    const [tag, value] = [integers[i] ?? 0n, integers[i + 1]];
    if (tag === 0n) return { fields, ...readEdicts(integers, i + 1, outputs) };
    if (value === undefined) return { fields, edicts: [], flaw: 'TruncatedField' };
    fields.add(tag, value);
  }
  return { fields, edicts: [], flaw: undefined };
}

/** Reads edicts of four integers each. The id of an edict is encoded as the difference to the previous id. */
function readEdicts(integers: readonly bigint[], from: number, outputs: number): { edicts: Edict[]; flaw: Flaw | undefined } {
  const edicts: Edict[] = [];
  let id: MessageId = { block: 0n, tx: 0n };
  for (let i = from; i < integers.length; i += 4) {
    const [block, tx, amount, output] = [integers[i], integers[i + 1], integers[i + 2], integers[i + 3]];
    if (block === undefined || tx === undefined || amount === undefined || output === undefined)
      return { edicts, flaw: 'TrailingIntegers' };
    const next = idOf(id.block + block, block === 0n ? id.tx + tx : tx);
    if (!next) return { edicts, flaw: 'EdictRuneId' };
    if (output > BigInt(outputs)) return { edicts, flaw: 'EdictOutput' };
    id = next;
    edicts.push({ id, amount, output: Number(output) });
  }
  return { edicts, flaw: undefined };
}
