/**
 * Writes and reads tables of pointers (archive/activityTables.ts) one after another.
 */
import { POINTERS_PER_BLOCK, type Pointer, pointerOffset, readPointer, writePointer } from '../archive/activityTables.ts';
import { crc32 } from '../archive/crc32.ts';
import { BLOCK_BYTES, blocksPerFile, fileBytes, type Level, totalOf } from '../archive/sortedTable.ts';
import { BuildError } from '../errors.ts';
import type { PutFile } from './segments.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Packs pointers into files. */
export class PointerWriter {
  readonly #put: PutFile;
  readonly #content: Buffer;
  readonly #view: DataView;
  readonly #perFile: number;
  readonly #files: string[] = [];
  /** Pointers in the current file. */
  #count = 0;
  total = 0;

  constructor(objectSize: number, put: PutFile) {
    this.#put = put;
    const blocks = blocksPerFile(objectSize);
    this.#perFile = blocks * POINTERS_PER_BLOCK;
    this.#content = Buffer.alloc(blocks * BLOCK_BYTES);
    this.#view = new DataView(this.#content.buffer, this.#content.byteOffset, this.#content.length);
  }

  /** Throws a BuildError when a level has more pointers than heads can name. */
  add(position: number, length: number, record: number): void {
    writePointer(this.#view, pointerOffset(this.#count), position, length, record);
    this.#count += 1;
    this.total += 1;
    if (this.total > MOST_POINTERS) {
      throw new BuildError('the lists by rune and address are too long', ['Build without them: with --no-lists, or without --lists.']);
    }
    if (this.#count === this.#perFile) this.#end();
  }

  /** Writes the current file. Unused bytes at its end are zeros. */
  #end(): void {
    const bytes = Math.ceil(this.#count / POINTERS_PER_BLOCK) * BLOCK_BYTES;
    for (let at = 0; at < bytes; at += BLOCK_BYTES) {
      const sum = at + BLOCK_BYTES - 4;
      this.#view.setUint32(sum, crc32(this.#content, at, sum));
    }
    this.#files.push(this.#put(this.#content.subarray(0, bytes)));
    this.#content.fill(0, 0, bytes);
    this.#count = 0;
  }

  /** Writes the last file. */
  finish(first: number, last: number): Level {
    if (this.#count > 0) this.#end();
    return { first, last, counts: [this.total], files: this.#files };
  }
}

/** Positions have 4 bytes. */
const MOST_POINTERS = 2 ** 32;

/** Yields the pointers of a level of the last build. */
export function* pointersOf(old: StoredArchive, level: Level): Generator<Pointer> {
  let left = totalOf(level);
  for (const [index, file] of level.files.entries()) {
    const size = fileBytes(level, index, old.root.objectSize, POINTERS_PER_BLOCK);
    for (const blocks of old.blocksOf(file, size)) {
      const view = new DataView(blocks.buffer, blocks.byteOffset, blocks.length);
      const count = Math.min((blocks.length / BLOCK_BYTES) * POINTERS_PER_BLOCK, left);
      for (let i = 0; i < count; i += 1) yield readPointer(view, pointerOffset(i));
      left -= count;
    }
  }
}
