/** Reads complete columns of a DuckDB chunk as arrays of numbers or bytes, because calling DuckDB for each cell would be much slower. */
import type { DuckDBDataChunk } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';

/**
 * Size of DuckDB's string_t in bytes. A string_t begins with the length of the string (4 bytes). A string of up to 12 bytes follows. For a
 * longer string, a prefix of it (4 bytes) and its address (8 bytes) follow.
 */
const ENTRY_BYTES = 16;
const INLINE_BYTES = 12;
/** Size in bytes at which a run of strings ends, so that runs stay far below 2^32 bytes. */
const LONGEST_RUN = 1 << 28;

/** Returns a copy of a column's memory, which stays valid after the chunk is freed (test/duckdb/columns.test.ts). Throws for a NULL. */
function dataOf({ chunk, rowCount }: DuckDBDataChunk, column: number, bytesPerRow: number): Uint8Array {
  const vector = duckdb.data_chunk_get_vector(chunk, column);
  // The bindings return null when the column has no NULL.
  const validity: Uint8Array | null = duckdb.vector_get_validity(vector, Math.ceil(rowCount / 64) * 8);
  for (let row = 0; validity !== null && row < rowCount; row += 1)
    if (((validity[row >> 3] ?? 0) & (1 << (row & 7))) === 0) throw new Error(`column ${column} of row ${row} is NULL`);
  return duckdb.vector_get_data(vector, rowCount * bytesPerRow);
}

export type Chunks = AsyncIterable<DuckDBDataChunk>;

/** Reads a DOUBLE column. Throws when a cell is NULL. */
export function readDoubles(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { buffer, byteOffset } = dataOf(chunk, column, 8);
  return new Float64Array(buffer, byteOffset, chunk.rowCount);
}

/** Reads a TINYINT column. Throws when a cell is NULL. */
export const readBytes = (chunk: DuckDBDataChunk, column: number): Uint8Array => dataOf(chunk, column, 1);

/** Strings of a column, joined in row order. */
export interface Blobs {
  /** Row i has the bytes from offsets[i] (inclusive) to offsets[i + 1] (exclusive) of the joined strings. */
  readonly offsets: Float64Array;
  /** Copies the rows `from` (inclusive) to `to` (exclusive) into `target` at position `at`. */
  copyTo(target: Uint8Array, at: number, from: number, to: number): void;
}

/** Reads a BLOB column. Throws when a cell is NULL. */
export function readBlobs(chunk: DuckDBDataChunk, column: number): Blobs {
  const { rowCount } = chunk;
  const entries = dataOf(chunk, column, ENTRY_BYTES);
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const lengthOf = (row: number) => view.getUint32(row * ENTRY_BYTES, true);
  // Addresses have at most 48 bits, so a number represents them exactly.
  const addressOf = (row: number) => view.getUint32(row * ENTRY_BYTES + 8, true) + view.getUint32(row * ENTRY_BYTES + 12, true) * 2 ** 32;

  const offsets = new Float64Array(rowCount + 1);
  for (let row = 0; row < rowCount; row += 1) offsets[row + 1] = (offsets[row] ?? 0) + lengthOf(row);
  /** Strings that are consecutive in memory: copying a few runs is faster than copying each string. `start` is in the joined strings. */
  const runs: { readonly start: number; readonly bytes: Uint8Array }[] = [];
  for (let row = 0; row < rowCount; ) {
    const [first, start] = [row, offsets[row] ?? 0];
    if (lengthOf(row) <= INLINE_BYTES) {
      const at = row * ENTRY_BYTES + 4;
      runs.push({ start, bytes: entries.subarray(at, at + lengthOf(row)) });
      row += 1;
      continue;
    }
    const address = addressOf(row);
    let length = 0;
    while (row < rowCount && lengthOf(row) > INLINE_BYTES && addressOf(row) === address + length && length < LONGEST_RUN) {
      length += lengthOf(row);
      row += 1;
    }
    const pointerAt = view.byteOffset + first * ENTRY_BYTES + 8;
    runs.push({ start, bytes: duckdb.get_data_from_pointer(view.buffer as ArrayBuffer, pointerAt, length) });
  }
  return {
    offsets,
    copyTo: (target, at, from, to) => {
      const [begin, end] = [offsets[from] ?? 0, offsets[to] ?? 0];
      for (const { start, bytes } of runs) {
        if (start >= end) return;
        if (start + bytes.length <= begin) continue;
        target.set(bytes.subarray(Math.max(begin - start, 0), end - start), at + Math.max(start - begin, 0));
      }
    },
  };
}

/** Returns the bytes of all strings of a BLOB or VARCHAR column, joined in row order. Throws when a cell is NULL. */
export function joinedBlobs(chunk: DuckDBDataChunk, column: number): Pick<Blobs, 'offsets'> & { readonly bytes: Buffer } {
  const { offsets, copyTo } = readBlobs(chunk, column);
  const bytes = Buffer.allocUnsafeSlow(offsets[chunk.rowCount] ?? 0);
  copyTo(bytes, 0, 0, chunk.rowCount);
  return { offsets, bytes };
}
