/** Terms of open mints. A field is null if the message lacks it. Heights and offsets are unsigned 64-bit integers. */
export interface Terms {
  readonly amount: bigint | null;
  readonly cap: bigint | null;
  readonly heightStart: bigint | null;
  readonly heightEnd: bigint | null;
  readonly offsetStart: bigint | null;
  readonly offsetEnd: bigint | null;
}

interface Etching {
  readonly divisibility: number | null;
  readonly premine: bigint | null;
  /** The numeric name. Null if the etching gets a reserved name. */
  readonly name: bigint | null;
  readonly spacers: number | null;
  readonly symbol: string | null;
  readonly terms: Terms | null;
  readonly turbo: boolean;
}

/** An edict. `id` is `block:tx`. An `output` equal to the number of outputs means all outputs. */
interface Edict {
  readonly id: string;
  readonly amount: bigint;
  readonly output: number;
}

export interface Runestone {
  readonly kind: 'runestone';
  readonly edicts: readonly Edict[];
  readonly etching: Etching | null;
  readonly mint: string | null;
  readonly pointer: number | null;
}

/** A malformed message. `name` is the name that it etches, or null if it etches none. */
export interface Cenotaph {
  readonly kind: 'cenotaph';
  readonly flaw: string;
  readonly mint: string | null;
  readonly name: bigint | null;
}

const U32 = 2n ** 32n - 1n;
const U64 = 2n ** 64n - 1n;
const U128 = 2n ** 128n - 1n;
const OP_PUSHDATA4 = 78;

/**
 * Yields the instructions of a script: pushed bytes, or the number of another opcode. Yields `null` and ends at a push that exceeds the
 * script.
 */
export function* instructions(script: Buffer, start = 0): Generator<Buffer | number | null, void> {
  for (let at = start; at < script.length; ) {
    const opcode = script[at++] ?? 0;
    if (opcode > OP_PUSHDATA4) {
      yield opcode;
      continue;
    }
    let length = opcode;
    if (opcode > 75) {
      const width = 1 << (opcode - 76);
      if (at + width > script.length) return yield null;
      length = script.readUIntLE(at, width);
      at += width;
    }
    if (at + length > script.length) return yield null;
    yield script.subarray(at, at + length);
    at += length;
  }
}

/** Parses the runes message in the output scripts of a transaction. Returns null if there is none. */
export function decipher(scripts: readonly Buffer[]): Runestone | Cenotaph | null {
  const script = scripts.find((bytes) => bytes[0] === 0x6a && bytes[1] === 0x5d);
  if (script === undefined) return null;
  const pushes: Buffer[] = [];
  for (const part of instructions(script, 2)) {
    if (part === null) return cenotaph('InvalidScript');
    if (typeof part === 'number') return cenotaph('Opcode');
    pushes.push(part);
  }
  const integers = readIntegers(Buffer.concat(pushes));
  if (integers === null) return cenotaph('Varint');

  const message = readMessage(integers, scripts.length);
  const fields = new Fields(message.fields);
  let flags = fields.take(2n) ?? 0n;
  const flag = (bit: bigint): boolean => {
    const set = (flags & bit) !== 0n;
    flags &= ~bit;
    return set;
  };
  const etching = flag(1n) ? readEtching(fields, flag) : null;
  const mint = fields.takePair(20n);
  const pointer = fields.take(22n, (value) => value <= U32 && value < scripts.length);

  let { flaw } = message;
  const supply = (etching?.premine ?? 0n) + (etching?.terms?.cap ?? 0n) * (etching?.terms?.amount ?? 0n);
  if (supply > U128) flaw ??= 'SupplyOverflow';
  if (flags !== 0n) flaw ??= 'UnrecognizedFlag';
  if (fields.hasEvenTag()) flaw ??= 'UnrecognizedEvenTag';
  if (flaw !== null) return { ...cenotaph(flaw), mint, name: etching?.name ?? null };
  return { kind: 'runestone', edicts: message.edicts, etching, mint, pointer: pointer === null ? null : Number(pointer) };
}

function cenotaph(flaw: string): Cenotaph {
  return { kind: 'cenotaph', flaw, mint: null, name: null };
}

/** Decodes LEB128 integers of at most 128 bits. Returns null if one is malformed. */
function readIntegers(payload: Buffer): bigint[] | null {
  const integers: bigint[] = [];
  let value = 0n;
  let length = 0;
  for (const byte of payload) {
    if (length === 19 - 1 && (byte & 0x7c) !== 0) return null;
    if (length > 18) return null;
    value |= BigInt(byte & 0x7f) << BigInt(7 * length++);
    if ((byte & 0x80) !== 0) continue;
    integers.push(value);
    value = 0n;
    length = 0;
  }
  return length === 0 ? integers : null;
}

interface Message {
  flaw: string | null;
  readonly edicts: Edict[];
  readonly fields: Map<bigint, bigint[]>;
}

/** Sorts integers into fields and edicts. Stops at the first flaw. */
function readMessage(integers: readonly bigint[], outputs: number): Message {
  const message: Message = { flaw: null, edicts: [], fields: new Map() };
  for (let i = 0; i < integers.length; i += 2) {
    const [tag = 0n, value] = integers.slice(i, i + 2);
    if (tag === 0n) {
      message.flaw = readEdicts(integers.slice(i + 1), outputs, message.edicts);
      break;
    }
    if (value === undefined) {
      message.flaw = 'TruncatedField';
      break;
    }
    const values = message.fields.get(tag);
    if (values === undefined) message.fields.set(tag, [value]);
    else values.push(value);
  }
  return message;
}

function readEdicts(integers: readonly bigint[], outputs: number, edicts: Edict[]): string | null {
  let block = 0n;
  let tx = 0n;
  for (let i = 0; i < integers.length; i += 4) {
    const [blockDelta = 0n, txDelta = 0n, amount = 0n, output] = integers.slice(i, i + 4);
    if (output === undefined) return 'TrailingIntegers';
    block += blockDelta;
    tx = blockDelta === 0n ? tx + txDelta : txDelta;
    if (block > U64 || tx > U32 || (block === 0n && tx > 0n)) return 'EdictRuneId';
    if (output > U32 || output > outputs) return 'EdictOutput';
    edicts.push({ id: `${block}:${tx}`, amount, output: Number(output) });
  }
  return null;
}

/** The values of a message by tag. `take` leaves an invalid value here, so that its tag counts as unknown at the end. */
class Fields {
  readonly #fields: Map<bigint, bigint[]>;

  constructor(fields: Map<bigint, bigint[]>) {
    this.#fields = fields;
  }

  /** Removes and returns the first value of a tag, if `accepts` allows it. */
  take(tag: bigint, accepts: (value: bigint) => boolean = () => true): bigint | null {
    const value = this.#fields.get(tag)?.[0];
    if (value === undefined || !accepts(value)) return null;
    this.#drop(tag, 1);
    return value;
  }

  /** Removes the first two values of a tag, and returns them as a rune id. Returns null if they are not a valid id. */
  takePair(tag: bigint): string | null {
    const [block, tx] = this.#fields.get(tag) ?? [];
    if (block === undefined || tx === undefined || block > U64 || tx > U32 || (block === 0n && tx > 0n)) return null;
    this.#drop(tag, 2);
    return `${block}:${tx}`;
  }

  hasEvenTag(): boolean {
    return [...this.#fields.keys()].some((tag) => tag % 2n === 0n);
  }

  #drop(tag: bigint, count: number): void {
    const values = this.#fields.get(tag);
    values?.splice(0, count);
    if (values?.length === 0) this.#fields.delete(tag);
  }
}

function readEtching(fields: Fields, flag: (bit: bigint) => boolean): Etching {
  const upTo = (most: bigint) => (value: bigint) => value <= most;
  const divisibility = fields.take(1n, upTo(38n));
  const spacers = fields.take(3n, upTo(0x07ffffffn));
  const symbol = fields.take(5n, (value) => value <= 0x10ffffn && (value < 0xd800n || value > 0xdfffn));
  return {
    divisibility: divisibility === null ? null : Number(divisibility),
    premine: fields.take(6n),
    name: fields.take(4n),
    spacers: spacers === null ? null : Number(spacers),
    symbol: symbol === null ? null : String.fromCodePoint(Number(symbol)),
    terms: flag(2n)
      ? {
          cap: fields.take(8n),
          amount: fields.take(10n),
          heightStart: fields.take(12n, upTo(U64)),
          heightEnd: fields.take(14n, upTo(U64)),
          offsetStart: fields.take(16n, upTo(U64)),
          offsetEnd: fields.take(18n, upTo(U64)),
        }
      : null,
    turbo: flag(4n),
  };
}
