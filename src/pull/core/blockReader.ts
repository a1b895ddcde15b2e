/**
 * Reads blocks. Half of the time goes into the hashes of a block's transactions, so a thread computes them and checks the
 * merkle root. The first blocks are read without it: a thread takes longer to start than to read them.
 */
import { Worker } from 'node:worker_threads';
import { BuildError, messageOf } from '../../errors.ts';
import { type Block, BlockError, readBlock } from '../../runes/block.ts';
import type { HashReply } from './blockHasher.ts';
import { hash256 } from './hash256.ts';

/** Blocks that are read before the thread starts. */
const BLOCKS_BEFORE_THREAD = 20;

interface Waiting {
  resolve(reply: HashReply): void;
  reject(error: unknown): void;
}

export class BlockReader {
  #read = 0;
  #thread: Worker | undefined;
  /** Blocks in the thread. It replies in their order. */
  readonly #waiting: Waiting[] = [];
  /** Set when the thread ended by itself. */
  #failure: BuildError | undefined;

  /** Reads a block. The caller must not use the bytes any more. Throws a BlockError for bytes that are no block. */
  async read(bytes: Uint8Array): Promise<Block> {
    this.#read++;
    if (this.#read <= BLOCKS_BEFORE_THREAD) return readBlock(bytes, hash256);
    const reply = await this.#hash(bytes);
    if (reply.kind === 'damaged') throw new BlockError(reply.message);
    return readBlock(reply.bytes, hash256, reply.txids);
  }

  /** Ends the thread. */
  close(): void {
    void this.#thread?.terminate();
  }

  #hash(bytes: Uint8Array): Promise<HashReply> {
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      this.#thread ??= this.#start();
      this.#waiting.push({ resolve, reject });
      // Small buffers share their memory with others, so they cannot move.
      const own = bytes.length === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
      this.#thread.postMessage(own, [own.buffer as ArrayBuffer]);
    });
  }

  #start(): Worker {
    const thread = new Worker(new URL('./blockHasherThread.cjs', import.meta.url));
    thread.on('message', (reply: HashReply) => this.#waiting.shift()?.resolve(reply));
    thread.on('error', (error) => {
      this.#failure = new BuildError(`a thread that hashes blocks ended: ${messageOf(error)}`);
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
    });
    return thread;
  }
}
