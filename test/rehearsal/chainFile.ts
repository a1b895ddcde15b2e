/**
 * Stores an invented chain on disk. Blocks are only appended, including those of branches, so that the simulated node
 * can read while the rehearsal writes. A block replaces all earlier blocks of the same or a greater height.
 *
 *     blocks.bin         blocks, one after the other
 *     index.bin          for each block: hash, offset, length, height
 *     commitments.txt    for each output that commits to a name: outpoint, height, script
 */
import { closeSync, openSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { MadeBlock } from './chain.ts';

const RECORD_BYTES = 32 + 8 + 4 + 4;

/** Number of bytes to buffer before a write. */
const CHUNK_BYTES = 1 << 20;

/** Location of a block in the file. */
export interface PlacedBlock {
  /** Block hash, as Bitcoin displays it. */
  readonly hash: string;
  readonly height: number;
  readonly offset: number;
  readonly length: number;
}

const pathsOf = (folder: string) => ({
  blocks: join(folder, 'blocks.bin'),
  index: join(folder, 'index.bin'),
  commitments: join(folder, 'commitments.txt'),
});

const displayed = (hash: Uint8Array): string => Buffer.from(hash).reverse().toString('hex');

/** Appends to a file in large writes. */
class Appended {
  readonly #file: number;
  #parts: Uint8Array[] = [];
  #pending = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  put(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#pending += bytes.length;
    if (this.#pending >= CHUNK_BYTES) this.flush();
  }

  flush(): void {
    const bytes = Buffer.concat(this.#parts);
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#file, bytes, done);
    this.#parts = [];
    this.#pending = 0;
  }

  close(): void {
    closeSync(this.#file);
  }
}

export class ChainWriter {
  readonly #blocks: Appended;
  readonly #index: Appended;
  readonly #commitments: Appended;
  #offset: number;
  /** Number of blocks in the file, including those of branches. */
  count: number;

  constructor(folder: string) {
    const paths = pathsOf(folder);
    this.#blocks = new Appended(paths.blocks);
    this.#index = new Appended(paths.index);
    this.#commitments = new Appended(paths.commitments);
    this.#offset = statSync(paths.blocks).size;
    this.count = statSync(paths.index).size / RECORD_BYTES;
  }

  add({ hash, height, bytes, commitments }: MadeBlock): void {
    const record = Buffer.alloc(RECORD_BYTES);
    record.set(hash);
    record.writeBigUInt64LE(BigInt(this.#offset), 32);
    record.writeUInt32LE(bytes.length, 40);
    record.writeUInt32LE(height, 44);
    this.#blocks.put(bytes);
    this.#index.put(record);
    for (const { txid, vout, height: at, script } of commitments) {
      this.#commitments.put(Buffer.from(`${displayed(txid)}:${vout} ${at} ${Buffer.from(script).toString('hex')}\n`));
    }
    this.#offset += bytes.length;
    this.count++;
  }

  /** Writes all buffered data. Writes the index last, because readers read only blocks that are in the index. */
  flush(): void {
    for (const file of [this.#blocks, this.#commitments, this.#index]) file.flush();
  }

  close(): void {
    this.flush();
    for (const file of [this.#blocks, this.#commitments, this.#index]) file.close();
  }
}

/** Reads a chain while a writer extends it. */
export class ChainReader {
  readonly #paths: ReturnType<typeof pathsOf>;
  readonly #file: number;
  #chain: PlacedBlock[] = [];
  #read = 0;

  constructor(folder: string) {
    this.#paths = pathsOf(folder);
    this.#file = openSync(this.#paths.blocks, 'r');
  }

  /**
   * Returns the best chain, by height, when the file has only its first `count` blocks. `count` may not decrease
   * between calls.
   */
  chainAfter(count: number): readonly PlacedBlock[] {
    const index = readFileSync(this.#paths.index);
    const chain = [...this.#chain];
    for (; this.#read < Math.min(count, index.length / RECORD_BYTES); this.#read++) {
      const at = this.#read * RECORD_BYTES;
      const height = index.readUInt32LE(at + 44);
      chain.length = height;
      chain.push({
        hash: displayed(index.subarray(at, at + 32)),
        height,
        offset: Number(index.readBigUInt64LE(at + 32)),
        length: index.readUInt32LE(at + 40),
      });
    }
    this.#chain = chain;
    return chain;
  }

  bytes({ offset, length }: PlacedBlock): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const read = readSync(this.#file, bytes, done, length - done, offset + done);
      if (read === 0) throw new Error(`${this.#paths.blocks} is cut off`);
      done += read;
    }
    return bytes;
  }

  /** Returns all outputs that commit to names, by outpoint. */
  commitments(): Map<string, { readonly height: number; readonly script: string }> {
    const lines = readFileSync(this.#paths.commitments, 'latin1').split('\n').slice(0, -1);
    return new Map(
      lines.map((line) => {
        const [outpoint = '', height, script = ''] = line.split(' ');
        return [outpoint, { height: Number(height), script }];
      }),
    );
  }
}
