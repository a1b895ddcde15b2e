/**
 * Reads a BLOB column of a chunk. DuckDB lays the strings of a chunk out one after another, so they are copied out in a few long runs: a call for
 * each of them would cost more than all the rest of moving it.
 */
import type { DuckDBDataChunk } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';

/** Bytes of DuckDB's string_t: the length, then up to 12 bytes in place or, of longer ones, 4 bytes and the address of all. */
const ENTRY_BYTES = 16;
const INLINE_BYTES = 12;
/** A run ends here, so that its length is far from 2^32. */
const LONGEST_RUN = 1 << 28;

/** The bytes of each row of a column. Throws when one is NULL. */
export function readBlobs(chunk: DuckDBDataChunk, column: number): (row: number) => Uint8Array {
  const { rowCount } = chunk;
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
  const validity = duckdb.vector_get_validity(vector, Math.ceil(rowCount / 64) * 8);
  for (let row = 0; validity !== null && row < rowCount; row += 1) {
    if (((validity[row >> 3] ?? 0) & (1 << (row & 7))) === 0) throw new Error(`row ${row} of a BLOB column is NULL`);
  }
  const entries = duckdb.vector_get_data(vector, rowCount * ENTRY_BYTES);
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const lengthOf = (row: number) => view.getUint32(row * ENTRY_BYTES, true);
  // Addresses below 2^53 are exact; all that there are have at most 48 bits.
  const addressOf = (row: number) => view.getUint32(row * ENTRY_BYTES + 8, true) + view.getUint32(row * ENTRY_BYTES + 12, true) * 2 ** 32;

  const slices = new Array<Uint8Array>(rowCount);
  for (let row = 0; row < rowCount; ) {
    if (lengthOf(row) <= INLINE_BYTES) {
      const start = row * ENTRY_BYTES + 4;
      slices[row] = entries.slice(start, start + lengthOf(row));
      row += 1;
      continue;
    }
    let end = row;
    let length = 0;
    const start = addressOf(row);
    while (end < rowCount && lengthOf(end) > INLINE_BYTES && addressOf(end) === start + length && length < LONGEST_RUN) {
      length += lengthOf(end);
      end += 1;
    }
    const bytes = duckdb.get_data_from_pointer(view.buffer as ArrayBuffer, view.byteOffset + row * ENTRY_BYTES + 8, length);
    for (let at = 0; row < end; row += 1) {
      slices[row] = bytes.subarray(at, at + lengthOf(row));
      at += lengthOf(row);
    }
  }
  return (row) => slices[row] ?? new Uint8Array(0);
}
