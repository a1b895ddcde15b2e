/**
 * Invents a chain of blocks for bench/node.ts. Blocks are as large as real ones, and have as many transactions, inputs and outputs as
 * blocks 849236 and 866342. Transactions with runes spend outputs of this chain, most of them young, and outputs that nodeState.ts puts
 * into the ledger. All values come from fixed seeds, so every machine makes the same chain.
 */
import { type Cipher, createCipheriv, hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashText } from '../src/runes/bytes.ts';
import { commitmentOf, nameNumber } from '../src/runes/name.ts';
import { type RuneId, runeId } from '../src/runes/runeId.ts';
import type { RuneOutput } from '../src/runes/unspentLedger.ts';
import { BlockWriter } from '../test/rehearsal/blockWriter.ts';
import { messageScript, tapscriptOf } from '../test/rehearsal/scripts.ts';
import { hash256 } from '../test/support/memoryLedger.ts';
import { randomNumbers } from './random.ts';

/**
 * Height of the last block before the chain. The state (nodeState.ts) is the ledger after this block. The transactions of this block have
 * no runes.
 */
export const BASE = 909_999;
const BLOCK_BYTES = 1_590_000;

/** Number of runes that the chain moves and mints. The state may have more runes, which the chain does not use. */
const MOVED_RUNES = 1000;

/** Number of runes that each block etches. Their etchings have commitments. */
const ETCHINGS = 2;

/** Number of rune transactions of each kind that make 1,000 rows together. */
const PER_1000_ROWS = {
  /** A mint to one output makes 2 rows. */
  mint: 210,
  /** An edict for one output, with the rest to another, makes 4 rows. */
  edict: 70,
  /** A transaction with one rune input and no message makes 2 rows. */
  plain: 100,
  /** Eight edicts make 18 rows. */
  split: 5,
} as const;
type Kind = keyof typeof PER_1000_ROWS | 'etching';

/** Share of the spent outputs with runes that come from the state, not from this chain. */
const OLD_SHARE = 0.25;

/** Age of the other spent outputs: mean and maximum number of later outputs with runes. */
const YOUNG = { mean: 3000, most: 20_000 };

/** Returns the id of a rune of the state by its number, counted from 0. */
export const oldRune = (number: number): RuneId => runeId(840_001 + Math.floor(number / 4), 1 + (number % 4));

/** Returns an output of the state, which the ledger has before the chain begins. */
export function oldOutput(number: number): RuneOutput & { readonly outpoint: Uint8Array } {
  const id = hash('sha256', `output ${number}`, 'buffer');
  const outpoint = Buffer.concat([id, Uint8Array.of(number % 4, 0, 0, 0)]);
  return { outpoint, script: taproot(id), balances: [{ rune: oldRune(number % MOVED_RUNES), amount: BigInt(1000 + (number % 1e6)) }] };
}

const taproot = (key: Uint8Array): Uint8Array => Buffer.concat([Uint8Array.of(0x51, 32), key]);

/** An output with runes that the chain may spend. */
interface Coin {
  readonly outpoint: Uint8Array;
  readonly rune: { readonly block: number; readonly tx: number };
}

const runeOf = (id: RuneId): Coin['rune'] => ({ block: Math.floor(id / 2 ** 20), tx: id % 2 ** 20 });

/** An output script. A number is the length of a random script that pays to a witness program: 22 or 34 bytes. */
type Script = Uint8Array | 22 | 34;

/** A block whose transactions have random signatures, keys and addresses. */
class RandomBlock {
  readonly #random: Cipher;
  readonly #writer: BlockWriter;

  constructor(readonly height: number) {
    this.#random = createCipheriv('aes-256-ctr', hash('sha256', `block ${height}`, 'buffer'), Buffer.alloc(16));
    this.#writer = new BlockWriter(height, [Uint8Array.of(0x51)]);
  }

  get transactions(): number {
    return this.#writer.transactions;
  }

  get bytes(): number {
    return this.#writer.bytes;
  }

  /**
   * Adds a transaction, and returns its id. An input without an outpoint gets a random one. `tapscript` is in the witness of the first
   * input.
   */
  transaction(inputs: readonly (Uint8Array | undefined)[], scripts: readonly Script[], tapscript?: Uint8Array): Uint8Array {
    return this.#writer.add(
      inputs.map((outpoint, index) => ({
        txid: outpoint?.subarray(0, 32) ?? this.#bytes(32),
        vout: outpoint?.[32] ?? 0,
        witness: tapscript && index === 0 ? [this.#bytes(64), tapscript, this.#bytes(33)] : [this.#bytes(72), this.#bytes(33)],
      })),
      scripts.map((script) =>
        typeof script === 'number' ? Buffer.concat([Uint8Array.of(script === 34 ? 0x51 : 0, script - 2), this.#bytes(script - 2)]) : script,
      ),
    );
  }

  /** Returns the block. `previous` is the hash of the previous block, in the byte order of hashing. */
  end(previous: Uint8Array): Uint8Array {
    return this.#writer.end(previous, 1_750_000_000 + 600 * (this.height - BASE)).bytes;
  }

  #bytes(length: number): Buffer {
    return this.#random.update(Buffer.alloc(length));
  }
}

/** Makes the blocks of the chain in order. */
class ChainMaker {
  readonly #random = randomNumbers(1);
  readonly #coins: Coin[] = [];
  #old = 0;
  #etched = 0;

  /** Returns a list of rune transactions, by kind, that together make about `rows` rows. The order is random. */
  #kinds(rows: number): Kind[] {
    const kinds: Kind[] = rows === 0 ? [] : new Array<Kind>(ETCHINGS).fill('etching');
    for (const [kind, count] of Object.entries(PER_1000_ROWS)) {
      kinds.push(...new Array<Kind>(Math.round((count * rows) / 1000)).fill(kind as Kind));
    }
    for (let i = kinds.length - 1; i > 0; i--) {
      const other = Math.floor(this.#random() * (i + 1));
      [kinds[i], kinds[other]] = [kinds[other] ?? 'plain', kinds[i] ?? 'plain'];
    }
    return kinds;
  }

  block(height: number, rows: number, previous: Uint8Array): Uint8Array {
    const writer = new RandomBlock(height);
    const kinds = this.#kinds(rows);
    kinds.forEach((kind, index) => {
      this.#write(writer, kind);
      // Fills the space before the next rune transaction with other transactions.
      while (writer.bytes < (BLOCK_BYTES * (index + 1)) / kinds.length) this.#other(writer);
    });
    while (writer.bytes < BLOCK_BYTES) this.#other(writer);
    return writer.end(previous);
  }

  /** Writes a transaction without runes. */
  #other(writer: RandomBlock): void {
    const draw = this.#random();
    const inputs = draw < 0.66 ? 1 : draw < 0.9 ? 2 : draw < 0.993 ? 5 : 60;
    const outputs = 1 + Math.floor(this.#random() * 3.4);
    writer.transaction(
      new Array(inputs).fill(undefined),
      Array.from({ length: outputs }, () => (this.#random() < 0.4 ? 34 : 22)),
    );
  }

  #write(writer: RandomBlock, kind: Kind): void {
    const index = writer.transactions;
    const add = (txid: Uint8Array, output: number, rune: Coin['rune']) => {
      this.#coins.push({ outpoint: Buffer.concat([txid, Uint8Array.of(output, 0, 0, 0)]), rune });
    };
    if (kind === 'mint') {
      const rune = runeOf(oldRune(Math.floor(this.#random() ** 3 * MOVED_RUNES)));
      const txid = writer.transaction([undefined], [messageScript([20, rune.block, 20, rune.tx]), 34]);
      add(txid, 1, rune);
    } else if (kind === 'etching') {
      const name = nameNumber('BENCHMARKCHAIN') + BigInt(this.#etched++);
      const message = messageScript([2, 3, 4, name, 1, 2, 5, 0x29c9, 6, 1_000_000, 8, 21_000, 10, 1000]);
      add(writer.transaction([undefined], [message, 34], tapscriptOf(commitmentOf(name))), 1, { block: writer.height, tx: index });
    } else if (kind === 'plain') {
      const { outpoint, rune } = this.#take();
      add(writer.transaction([outpoint, undefined], [34, 22, 22]), 0, rune);
    } else {
      const { outpoint, rune } = this.#take();
      const count = kind === 'edict' ? 1 : 8;
      const edicts = Array.from({ length: count }, (_, i) => (i === 0 ? [rune.block, rune.tx, 5, 2] : [0, 0, 5, 2 + i])).flat();
      const txid = writer.transaction([outpoint, undefined], [34, messageScript([0, ...edicts]), ...new Array<Script>(count).fill(34), 22]);
      for (let output = 0; output < 2 + count; output++) if (output !== 1) add(txid, output, rune);
    }
  }

  /** Removes an output with runes from the pool, and returns it. */
  #take(): Coin {
    const coins = this.#coins;
    if (coins.length > 2 * YOUNG.most) coins.splice(0, YOUNG.most);
    const age = Math.floor(-Math.log(1 - this.#random()) * YOUNG.mean);
    const [coin] = this.#random() < OLD_SHARE || age >= coins.length ? [] : coins.splice(coins.length - 1 - age, 1);
    if (coin) return coin;
    const number = this.#old++;
    return { outpoint: oldOutput(number).outpoint, rune: runeOf(oldRune(number % MOVED_RUNES)) };
  }
}

/** Writes block `BASE` and the next `count` blocks to a folder, unless they exist. Returns the hash of block `BASE`. */
export function makeChain(folder: string, count: number, rows: number): string {
  const done = join(folder, 'blocks.txt');
  const path = (height: number) => join(folder, `${height}.bin`);
  if (!existsSync(done) || Number(readFileSync(done, 'utf8')) < count) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const maker = new ChainMaker();
    let previous: Uint8Array = new Uint8Array(32);
    for (let height = BASE; height <= BASE + count; height++) {
      const bytes = maker.block(height, height === BASE ? 0 : rows, previous);
      previous = hash256(bytes.subarray(0, 80));
      writeFileSync(path(height), bytes);
    }
    writeFileSync(done, String(count));
  }
  return hashText(hash256(readFileSync(path(BASE)).subarray(0, 80)));
}
