/** CRC-32 as in gzip (RFC 1952). Implemented here, because the hosts have no common function for CRC-32. */

/** Item n is the CRC of byte n. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Returns the CRC-32 of bytes `from` to `to - 1`, as an unsigned number. */
export function crc32(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let crc = 0xffffffff;
  for (let i = from; i < to; i += 1) crc = (TABLE[(crc ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}
