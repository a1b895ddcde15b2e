/**
 * Reads the columns of a chunk as arrays of numbers and as bytes. A call for each cell would cost more than all the rest of moving it, so a whole
 * column is copied at once.
 */
import type { DuckDBDataChunk } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';

/** Bytes of DuckDB's string_t: the length, then up to 12 bytes in place or, of longer ones, 4 bytes and the address of all. */
const ENTRY_BYTES = 16;
const INLINE_BYTES = 12;
/** A run ends here, so that its length is far from 2^32. */
const LONGEST_RUN = 1 << 28;

/**
 * The memory of a column. The bindings hand out copies, here and where a pointer leads, so what is made of it stays when the chunk goes; were that to
 * change with a new version, test/columns.test.ts would fail.
 */
function dataOf(chunk: DuckDBDataChunk, column: number, bytesPerRow: number): Uint8Array {
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
  const { rowCount } = chunk;
  // None when no cell is NULL.
  const validity: Uint8Array | null = duckdb.vector_get_validity(vector, Math.ceil(rowCount / 64) * 8);
  for (let row = 0; validity !== null && row < rowCount; row += 1) {
    if (((validity[row >> 3] ?? 0) & (1 << (row & 7))) === 0) throw new Error(`column ${column} of row ${row} is NULL`);
  }
  return duckdb.vector_get_data(vector, rowCount * bytesPerRow);
}

/** A column of DOUBLE without NULL. */
export function readDoubles(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { buffer, byteOffset } = dataOf(chunk, column, 8);
  return new Float64Array(buffer, byteOffset, chunk.rowCount);
}

/** A column of TINYINT without NULL. */
export const readBytes = (chunk: DuckDBDataChunk, column: number): Uint8Array => dataOf(chunk, column, 1);

/** The texts or blobs of a column, one after another in the order of rows. */
export interface Blobs {
  /** Where each begins: row i is bytes offsets[i] up to offsets[i + 1] of all. */
  readonly offsets: Float64Array;
  /** Puts rows `from` up to, not including, `to` into `target` at `at`. */
  copyTo(target: Uint8Array, at: number, from: number, to: number): void;
}

/** Rows that follow each other in memory. */
interface Run {
  readonly row: number;
  readonly bytes: Uint8Array;
}

/** A column of BLOB without NULL. DuckDB mostly lays the strings of a chunk out one after another, so they are few long runs. */
export function readBlobs(chunk: DuckDBDataChunk, column: number): Blobs {
  const { rowCount } = chunk;
  const entries = dataOf(chunk, column, ENTRY_BYTES);
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const lengthOf = (row: number) => view.getUint32(row * ENTRY_BYTES, true);
  // Addresses have at most 48 bits, so they are exact.
  const addressOf = (row: number) => view.getUint32(row * ENTRY_BYTES + 8, true) + view.getUint32(row * ENTRY_BYTES + 12, true) * 2 ** 32;

  const offsets = new Float64Array(rowCount + 1);
  for (let row = 0; row < rowCount; row += 1) offsets[row + 1] = (offsets[row] ?? 0) + lengthOf(row);
  const runs: Run[] = [];
  for (let row = 0; row < rowCount; ) {
    const first = row;
    if (lengthOf(row) <= INLINE_BYTES) {
      const start = row * ENTRY_BYTES + 4;
      runs.push({ row, bytes: entries.subarray(start, start + lengthOf(row)) });
      row += 1;
      continue;
    }
    const start = addressOf(row);
    let length = 0;
    while (row < rowCount && lengthOf(row) > INLINE_BYTES && addressOf(row) === start + length && length < LONGEST_RUN) {
      length += lengthOf(row);
      row += 1;
    }
    const pointerAt = view.byteOffset + first * ENTRY_BYTES + 8;
    runs.push({ row: first, bytes: duckdb.get_data_from_pointer(view.buffer as ArrayBuffer, pointerAt, length) });
  }
  return {
    offsets,
    copyTo: (target, at, from, to) => {
      const [begin, end] = [offsets[from] ?? 0, offsets[to] ?? 0];
      for (const { row, bytes } of runs) {
        const start = offsets[row] ?? 0;
        if (start >= end) return;
        if (start + bytes.length <= begin) continue;
        const part = bytes.subarray(Math.max(begin - start, 0), Math.min(end - start, bytes.length));
        target.set(part, at + Math.max(start - begin, 0));
      }
    },
  };
}
