/** Collects the JSON of rendered records in a buffer that grows as needed. */
import type { Blobs } from '../../duckdb/columns.ts';

/** JSON of records, each followed by a comma, so that consecutive records are one slice. */
export interface RecordSlices {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Record i has the bytes from offsets[i] to offsets[i + 1] - 2, and its comma follows. Items after the last record are unused. */
  readonly offsets: Uint32Array;
}

export class RecordBytes implements RecordSlices {
  bytes: Uint8Array<ArrayBuffer>;
  offsets: Uint32Array<ArrayBuffer>;
  count = 0;

  /** `bytes` is an unused buffer, or the size of a new buffer. */
  constructor(records: number, bytes: number | Uint8Array<ArrayBuffer>) {
    this.bytes = typeof bytes === 'number' ? new Uint8Array(bytes) : bytes;
    this.offsets = new Uint32Array(records + 1);
  }

  /** Number of used bytes. */
  get length(): number {
    return this.offsets[this.count] ?? 0;
  }

  /** Adds records `from` to `to - 1`, which already end with a comma. */
  add(records: Pick<Blobs, 'copyTo'> & { readonly offsets: ArrayLike<number> }, from: number, to: number): void {
    const shift = this.length - (records.offsets[from] ?? 0);
    this.#makeRoom(to - from, shift + (records.offsets[to] ?? 0));
    records.copyTo(this.bytes, this.length, from, to);
    for (let row = from; row < to; row += 1) {
      this.count += 1;
      this.offsets[this.count] = shift + (records.offsets[row + 1] ?? 0);
    }
  }

  /** Removes all records. The buffers stay allocated. */
  clear(): void {
    this.count = 0;
  }

  #makeRoom(records: number, bytes: number): void {
    if (bytes > this.bytes.length) this.bytes = enlarged(this.bytes, bytes, (length) => new Uint8Array(length));
    const needed = this.count + records + 1;
    if (needed > this.offsets.length) this.offsets = enlarged(this.offsets, needed, (length) => new Uint32Array(length));
  }
}

/** Copies an array into a new array of at least `length` elements and at least twice the size. */
export function enlarged<T extends Uint8Array | Uint32Array | Float64Array>(array: T, length: number, make: (length: number) => T): T {
  const larger = make(Math.max(length, array.length * 2));
  larger.set(array);
  return larger;
}

/** Returns the bytes of records `from` to `to - 1`, without the last comma. */
export const sliceRecords = ({ bytes, offsets }: RecordSlices, from: number, to: number): Uint8Array =>
  bytes.subarray(offsets[from], Math.max((offsets[to] ?? 0) - 1, offsets[from] ?? 0));
