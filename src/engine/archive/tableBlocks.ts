/** Writes and reads the blocks of tables (format/sortedTable.ts). All entries of a table have the same size. */
import { crc32 } from '../../format/crc32.ts';
import { BLOCK_BYTES, blocksPerFile, entriesPerBlock, entryOffset, fileBytes, type Level, totalOf } from '../../format/sortedTable.ts';
import type { PutFile } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';

/**
 * Packs entries into files of blocks. The buffer begins with one block and grows as needed. Most tables of a small
 * build have few blocks, and allocating 8 MB for each table would take a twentieth of the build's CPU time.
 */
export class BlockWriter {
  /** View of the content of the current file. `next` may replace the view by a larger one. */
  view: DataView;
  total = 0;
  #content: Buffer;
  readonly #mostBytes: number;
  readonly #perFile: number;
  readonly #files: string[] = [];
  /** Number of entries in the current file. */
  #entries = 0;

  /** `entryBytes` is the size of an entry. `unused` is the value of all bytes of unused entries. */
  constructor(
    objectSize: number,
    private readonly entryBytes: number,
    private readonly unused: number,
    private readonly put: PutFile,
  ) {
    const blocks = blocksPerFile(objectSize);
    this.#mostBytes = blocks * BLOCK_BYTES;
    this.#content = Buffer.alloc(BLOCK_BYTES);
    this.view = viewOf(this.#content);
    this.#perFile = blocks * entriesPerBlock(entryBytes);
  }

  /** Reserves room for the next entry. Returns its offset in `view`, where the caller writes it. */
  next(): number {
    if (this.#entries === this.#perFile) this.#endFile();
    const at = entryOffset(this.#entries, this.entryBytes);
    if (at + this.entryBytes > this.#content.length) this.#grow();
    this.#entries += 1;
    this.total += 1;
    return at;
  }

  #grow(): void {
    const larger = Buffer.alloc(Math.min(2 * this.#content.length, this.#mostBytes));
    larger.set(this.#content);
    this.#content = larger;
    this.view = viewOf(larger);
  }

  #endFile(): void {
    const perBlock = entriesPerBlock(this.entryBytes);
    const used = entryOffset(this.#entries - 1, this.entryBytes) + this.entryBytes;
    const bytes = Math.ceil(used / BLOCK_BYTES) * BLOCK_BYTES;
    this.#content.fill(this.unused, used, bytes - BLOCK_BYTES + perBlock * this.entryBytes);
    for (let at = 0; at < bytes; at += BLOCK_BYTES) {
      const sum = at + BLOCK_BYTES - 4;
      this.view.setUint32(sum, crc32(this.#content, at, sum));
    }
    this.#files.push(this.put(this.#content.subarray(0, bytes)));
    this.#entries = 0;
  }

  /** Writes the last file. Returns the names of all files. */
  finish(): readonly string[] {
    if (this.#entries > 0) this.#endFile();
    return this.#files;
  }
}

const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** Yields the entries of a table of the last build. `read` parses an entry of `entryBytes` bytes. */
export function* storedEntries<Entry>(
  old: StoredArchive,
  level: Level,
  entryBytes: number,
  read: (view: DataView, at: number) => Entry,
): Generator<Entry> {
  const perBlock = entriesPerBlock(entryBytes);
  let left = totalOf(level);
  for (const [index, file] of level.files.entries()) {
    for (const blocks of old.blocksOf(file, fileBytes(level, index, old.root.objectSize, perBlock))) {
      const view = viewOf(blocks);
      const count = Math.min((blocks.length / BLOCK_BYTES) * perBlock, left);
      for (let i = 0; i < count; i += 1) yield read(view, entryOffset(i, entryBytes));
      left -= count;
    }
  }
}
