/**
 * Writes and reads tables of pointers (archive/activityTables.ts) one after another.
 */
import { POINTER_BYTES, type Pointer, readPointer, writePointer } from '../archive/activityTables.ts';
import type { Level } from '../archive/sortedTable.ts';
import { BuildError } from '../errors.ts';
import { BlockWriter, storedEntries } from './blocks.ts';
import type { PutFile } from './segments.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Packs pointers into files. */
export class PointerWriter {
  readonly #blocks: BlockWriter;

  constructor(objectSize: number, put: PutFile) {
    this.#blocks = new BlockWriter(objectSize, POINTER_BYTES, 0, put);
  }

  /** Number of pointers. */
  get total(): number {
    return this.#blocks.total;
  }

  /** Throws a BuildError when a level has more pointers than heads can name. */
  add(position: number, length: number, record: number): void {
    writePointer(this.#blocks.view, this.#blocks.next(), position, length, record);
    if (this.total > MOST_POINTERS) {
      throw new BuildError('the lists by rune and address are too long', ['Build without them: with --no-lists, or without --lists.']);
    }
  }

  /** Writes the last file. */
  finish(first: number, last: number): Level {
    return { first, last, counts: [this.total], files: this.#blocks.finish() };
  }
}

/** Positions have 4 bytes. */
const MOST_POINTERS = 2 ** 32;

/** Yields the pointers of a level of the last build. */
export const pointersOf = (old: StoredArchive, level: Level): Generator<Pointer> => storedEntries(old, level, POINTER_BYTES, readPointer);
