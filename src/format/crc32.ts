/** CRC-32 as in gzip (RFC 1952). Implemented here, because not all platforms of hosts have a function for it. */

/** Item n is the CRC of byte n. */
const T0 = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Returns a table with the CRCs of the same bytes with one more zero byte after each. */
const withZero = (table: Uint32Array): Uint32Array => table.map((crc) => (T0[crc & 0xff] ?? 0) ^ (crc >>> 8));

// With eight tables, a step of the loop processes eight bytes, which is four times as fast as processing single bytes.
const T1 = withZero(T0);
const T2 = withZero(T1);
const T3 = withZero(T2);
const T4 = withZero(T3);
const T5 = withZero(T4);
const T6 = withZero(T5);
const T7 = withZero(T6);

const at = (table: Uint32Array, byte: number): number => table[byte] ?? 0;

/** Returns the CRC-32 of bytes `from` to `to - 1`, as an unsigned number. */
export function crc32(bytes: Uint8Array, from = 0, to = bytes.length): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let crc = 0xffffffff;
  let i = from;
  for (; i + 8 <= to; i += 8) {
    const a = crc ^ view.getUint32(i, true);
    const b = view.getUint32(i + 4, true);
    crc =
      at(T7, a & 0xff) ^
      at(T6, (a >>> 8) & 0xff) ^
      at(T5, (a >>> 16) & 0xff) ^
      at(T4, a >>> 24) ^
      at(T3, b & 0xff) ^
      at(T2, (b >>> 8) & 0xff) ^
      at(T1, (b >>> 16) & 0xff) ^
      at(T0, b >>> 24);
  }
  for (; i < to; i += 1) crc = at(T0, (crc ^ (bytes[i] ?? 0)) & 0xff) ^ (crc >>> 8);
  return ~crc >>> 0;
}
