/** Parses the bytes of a block. Stores only offsets of inputs and scripts, because most have no runes, and are never read again. */
import { copyOf, type Hash256, hashText, sameBytes, uint32At } from './bytes.ts';
import { decodeMessage, type Message } from './runestone.ts';
import { isMessage } from './script.ts';

/** Thrown if the bytes of a block are damaged. The message says where. */
export class BlockError extends Error {
  override readonly name = 'BlockError';
}

export const HEADER_BYTES = 80;
const HASH_BYTES = 32;

/** Size of an outpoint: a transaction id and an output index. */
export const OUTPOINT_BYTES = 36;

/** Numbers of a transaction in `BlockParts.places`. */
const PLACE_WORDS = 8;

/** Position of a transaction in a block, and its message. Offsets refer to the block's bytes. */
export interface TransactionPlace {
  /** Offset of its first byte. */
  readonly start: number;
  /** Index of its first input in `Block.inputs`. */
  readonly firstInput: number;
  readonly inputs: number;
  /** Index of its first output in `Block.scripts`. */
  readonly firstOutput: number;
  readonly outputs: number;
  readonly message: Message | undefined;
  /** Offset of the witnesses, 0 without witnesses. */
  readonly witness: number;
}

/** Fields of a block's header. Hashes are as Bitcoin displays them. */
export interface Header {
  readonly hash: string;
  /** Hash of the block before. */
  readonly previous: string;
  /** Seconds since 1970. */
  readonly time: number;
}

export const readHeader = (bytes: Uint8Array, hash256: Hash256): Header => ({
  hash: hashText(hash256(bytes.subarray(0, HEADER_BYTES))),
  previous: hashText(bytes, 4),
  time: uint32At(bytes, 68),
});

export interface Block extends BlockParts {
  readonly transactions: readonly TransactionPlace[];
}

/** A parsed block as typed arrays, which a thread can hand to another without copying them. */
export interface BlockParts extends Header {
  readonly bytes: Uint8Array;
  /** Transaction ids of 32 bytes each, in the byte order of the hash function. */
  readonly txids: Uint8Array;
  /** PLACE_WORDS numbers of each transaction: see `withPlaces`. */
  readonly places: Uint32Array;
  /** Offset of each input's outpoint. */
  readonly inputs: Uint32Array;
  /** Offset of each output's script. Its length is in `scriptLengths`. */
  readonly scripts: Uint32Array;
  readonly scriptLengths: Uint32Array;
}

/** A growing list of integers. The garbage collector need not copy it, unlike an array. */
class IntegerList {
  #all = new Uint32Array(1 << 12);
  length = 0;

  push(value: number): void {
    if (this.length === this.#all.length) {
      const all = this.#all;
      this.#all = new Uint32Array(2 * all.length);
      this.#all.set(all);
    }
    this.#all[this.length++] = value;
  }

  take(): Uint32Array {
    return new Uint32Array(this.#all.subarray(0, this.length));
  }
}

/** Reads the bytes of a block or of transactions in order. Throws a BlockError if the bytes end too early. */
class Reader {
  at = 0;
  constructor(
    readonly bytes: Uint8Array,
    /** Noun for the bytes in messages. */
    readonly source = 'block',
  ) {}

  /** Skips `length` bytes and returns the offset of the first. */
  skip(length: number, what: string): number {
    const from = this.at;
    this.at += length;
    if (this.at > this.bytes.length)
      throw new BlockError(`the ${this.source} ends inside of ${what}: it has ${this.bytes.length} bytes and would need ${this.at}`);
    return from;
  }

  /** Reads an integer of 1, 3, 5 or 9 bytes ("CompactSize"). */
  count(what: string): number {
    const first = this.bytes[this.skip(1, what)] ?? 0;
    if (first < 0xfd) return first;
    const from = this.skip(first === 0xfd ? 2 : first === 0xfe ? 4 : 8, what);
    const value = first === 0xfd ? uint32At(this.bytes, from) & 0xffff : uint32At(this.bytes, from);
    const high = first === 0xff ? uint32At(this.bytes, from + 4) : 0;
    if (value + high * 2 ** 32 < (first === 0xfd ? 0xfd : first === 0xfe ? 2 ** 16 : 2 ** 32))
      throw new BlockError(`${what} at byte ${from - 1} is not in its shortest form`);
    return value + high * 2 ** 32;
  }
}

/**
 * Parses a block and checks its merkle root. Throws a BlockError for bytes that are not a valid block. The caller must compare `hash` and
 * `previous` with the expected values.
 */
export const readBlock = (bytes: Uint8Array, hash256: Hash256): Block => withPlaces(readParts(bytes, hash256));

/** Parses and checks a block like `readBlock`, but does not decode its messages. */
export function readParts(bytes: Uint8Array, hash256: Hash256): BlockParts {
  const reader = new Reader(bytes);
  reader.skip(HEADER_BYTES, 'its header');
  const header = readHeader(bytes, hash256);
  const count = reader.count('the number of transactions');
  // Checks the count before memory is allocated for it. A transaction has 10 bytes or more.
  if (count === 0 || count * 10 > bytes.length) throw new BlockError(`a block of ${bytes.length} bytes cannot have ${count} transactions`);
  const read = readTransactions(reader, count, hash256);
  if (reader.at !== bytes.length)
    throw new BlockError(`block ${header.hash} has ${bytes.length - reader.at} unexpected bytes after its last transaction`);
  if (!sameBytes(merkleRoot(read.txids, hash256), 0, bytes, 36, 32))
    throw new BlockError(`block ${header.hash} has transactions that do not match the merkle root in its header`);
  return { ...header, bytes, ...read };
}

/**
 * Parses `count` transactions without a block, one after another. Returns them as a block with an empty header. Throws a BlockError for
 * bytes that are not exactly these transactions.
 */
export function readUnconfirmed(bytes: Uint8Array, count: number, hash256: Hash256): Block {
  const reader = new Reader(bytes, 'transaction');
  const read = readTransactions(reader, count, hash256);
  if (reader.at !== bytes.length) throw new BlockError(`the transaction is followed by ${bytes.length - reader.at} unexpected bytes`);
  return withPlaces({ hash: '', previous: '', time: 0, bytes, ...read });
}

function readTransactions(reader: Reader, count: number, hash256: Hash256): Omit<BlockParts, keyof Header | 'bytes'> {
  const { bytes } = reader;
  const places = new Uint32Array(PLACE_WORDS * count);
  const [inputs, scripts, scriptLengths] = [new IntegerList(), new IntegerList(), new IntegerList()];
  const txids = new Uint8Array(32 * count);
  // A transaction's id is the hash of its bytes without flag and witnesses. So a copy has version and lock time beside the other parts.
  const moved = copyOf(bytes);

  for (let index = 0; index < count; index++) {
    const start = reader.skip(4, 'a transaction');
    const segwit = bytes[reader.at] === 0;
    if (segwit && bytes[reader.skip(2, 'the flag of a transaction') + 1] !== 1)
      throw new BlockError(`transaction ${index} has no inputs, or an unknown flag, at byte ${start + 4}`);
    const body = reader.at;
    const firstInput = inputs.length;
    const inputCount = reader.count('the number of inputs');
    for (let i = 0; i < inputCount; i++) {
      inputs.push(reader.skip(OUTPOINT_BYTES, 'an input'));
      reader.skip(reader.count('the length of an input script') + 4, 'an input script');
    }
    const firstOutput = scripts.length;
    const outputCount = reader.count('the number of outputs');
    let [message, messageLength] = [0, 0];
    for (let i = 0; i < outputCount; i++) {
      reader.skip(8, 'an output');
      const length = reader.count('the length of an output script');
      const script = reader.skip(length, 'an output script');
      if (message === 0 && isMessage(bytes, script, length)) [message, messageLength] = [script, length];
      scripts.push(script);
      scriptLengths.push(length);
    }
    const witness = segwit ? reader.at : 0;
    for (let i = segwit ? inputCount : 0; i > 0; i--)
      for (let elements = reader.count('the number of witness elements'); elements > 0; elements--)
        reader.skip(reader.count('the length of a witness element'), 'a witness element');
    const lock = reader.skip(4, 'a lock time');
    const bodyEnd = segwit ? witness : lock;

    if (segwit) moved.copyWithin(body - 4, start, start + 4).copyWithin(bodyEnd, lock, lock + 4);
    txids.set(hash256(moved.subarray(body - 4, bodyEnd + 4)), 32 * index);
    places.set([start, firstInput, inputCount, firstOutput, outputCount, witness, message, messageLength], PLACE_WORDS * index);
  }
  return { txids, places, inputs: inputs.take(), scripts: scripts.take(), scriptLengths: scriptLengths.take() };
}

/** Adds the places of the transactions, with decoded messages. */
export function withPlaces(parts: BlockParts): Block {
  const { bytes, places } = parts;
  const transactions = Array.from({ length: places.length / PLACE_WORDS }, (_, index) => {
    const at = PLACE_WORDS * index;
    const [inputs = 0, outputs = 0, message = 0] = [places[at + 2], places[at + 4], places[at + 6]];
    return {
      start: places[at] ?? 0,
      firstInput: places[at + 1] ?? 0,
      inputs,
      firstOutput: places[at + 3] ?? 0,
      outputs,
      witness: places[at + 5] ?? 0,
      message: message === 0 ? undefined : decodeMessage(bytes.subarray(message, message + (places[at + 7] ?? 0)), outputs),
    };
  });
  return { ...parts, transactions };
}

/** Returns the merkle root of transaction ids; zeros if their end is repeated, which would not change the root (CVE-2012-2459). */
export function merkleRoot(txids: Uint8Array, hash256: Hash256): Uint8Array {
  let level = txids;
  for (let count = txids.length / 32; count > 1; count = level.length / 32) {
    for (let i = 0; i + 1 < count; i += 2) if (sameBytes(level, 32 * i, level, 32 * i + 32, 32)) return new Uint8Array(32);
    // On a level with an odd number of hashes, the last hash is paired with itself.
    const pairs = new Uint8Array(64 * Math.ceil(count / 2));
    pairs.set(level);
    pairs.copyWithin(32 * count, 32 * (count - 1), 32 * count);
    level = new Uint8Array(pairs.length / 2);
    for (let at = 0; at < pairs.length; at += 64) level.set(hash256(pairs.subarray(at, at + 64)), at / 2);
  }
  return level;
}

/** Returns the script of an output, as a view of the block's bytes. */
export function scriptOf(block: Block, transaction: TransactionPlace, output: number): Uint8Array {
  const from = block.scripts[transaction.firstOutput + output] ?? 0;
  return block.bytes.subarray(from, from + (block.scriptLengths[transaction.firstOutput + output] ?? 0));
}

/** Returns the last three elements of each input's witness. One of them is the tapscript, if any. Empty without witnesses. */
export function witnessEndsOf(block: Block, transaction: TransactionPlace): Uint8Array[][] {
  if (transaction.witness === 0) return [];
  const reader = new Reader(block.bytes);
  reader.at = transaction.witness;
  return Array.from({ length: transaction.inputs }, () => {
    const end: Uint8Array[] = [];
    // A witness may have millions of elements, so only the last ones get a view.
    for (let left = reader.count('the number of witness elements'); left > 0; left--) {
      const length = reader.count('the length of a witness element');
      const from = reader.skip(length, 'a witness element');
      if (left <= 3) end.push(block.bytes.subarray(from, from + length));
    }
    return end;
  });
}

/**
 * Checks that the witnesses of a block are those that its coinbase commits to (BIP 141). The merkle root covers all other bytes of the
 * transactions. On some networks the first blocks are older than this rule, and have no witnesses. Throws a BlockError if the first
 * transaction is no coinbase, or if the witnesses do not match its commitment.
 */
export function checkWitnesses(block: Block, hash256: Hash256): void {
  const { bytes, transactions } = block;
  const [coinbase] = transactions;
  // The outpoint in the input of a coinbase is a transaction id of zeros, and the highest index.
  const noOutput = new Uint8Array(OUTPOINT_BYTES).fill(0xff, HASH_BYTES);
  // Without this check, two adjacent hashes of the merkle tree (64 bytes) could pass for a transaction.
  if (coinbase?.inputs !== 1 || !sameBytes(bytes, block.inputs[0] ?? 0, noOutput, 0, OUTPOINT_BYTES))
    throw new BlockError(`block ${block.hash} does not begin with a coinbase`);
  const commitment = commitmentIn(block, coinbase);
  if (commitment === undefined) {
    if (transactions.every(({ witness }) => witness === 0)) return;
    throw new BlockError(`block ${block.hash} has witnesses, but its coinbase commits to none`);
  }
  // In this merkle tree, zeros replace the hash of the coinbase. The commitment is a hash of the tree's root and the coinbase's witness.
  const ids = new Uint8Array(HASH_BYTES * transactions.length);
  for (let i = 1; i < transactions.length; i++)
    ids.set(hash256(bytes.subarray(transactions[i]?.start, transactions[i + 1]?.start)), HASH_BYTES * i);
  const both = new Uint8Array(2 * HASH_BYTES);
  both.set(merkleRoot(ids, hash256));
  const [[reserved, ...more] = []] = witnessEndsOf(block, coinbase);
  const isReserved = reserved?.length === HASH_BYTES && more.length === 0;
  if (isReserved) both.set(reserved, HASH_BYTES);
  if (!isReserved || !sameBytes(hash256(both), 0, commitment, 0, HASH_BYTES))
    throw new BlockError(`block ${block.hash} has other witnesses than its coinbase commits to (${hashText(commitment, 0)})`);
}

/** Returns the hash in the coinbase's last output with a commitment. Undefined if no output has one. */
function commitmentIn(block: Block, coinbase: TransactionPlace): Uint8Array | undefined {
  // The script of such an output begins with OP_RETURN, a length and four marker bytes.
  const mark = Uint8Array.of(0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed);
  const end = mark.length + HASH_BYTES;
  for (let i = coinbase.outputs - 1; i >= 0; i--) {
    const script = scriptOf(block, coinbase, i);
    if (script.length >= end && sameBytes(script, 0, mark, 0, mark.length)) return script.subarray(mark.length, end);
  }
  return undefined;
}
