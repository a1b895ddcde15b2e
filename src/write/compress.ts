/**
 * Compresses pages into `.gz` and `.br` files, for hosts that send precompressed files. Their bytes depend on the
 * version of zlib. So the manifest does not count them, and verification compares the unpacked bytes.
 */
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';
import type { Encoding } from '../pages/site.ts';

/** Quality 9 takes ten times as long as 6 and makes a page only 1 % smaller. */
const BROTLI_QUALITY = 6;
/** The best level costs little: 0.25 ms for a page of 60 records. */
const SIDECAR_GZIP_LEVEL = 9;

/** Compresses bytes. */
export function compress(bytes: Uint8Array, encoding: Encoding): Buffer {
  if (encoding === 'gz') return gzipSync(bytes, { level: SIDECAR_GZIP_LEVEL });
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return brotliCompressSync(bytes, { params });
}

/** Unpacks bytes. Throws when they are damaged or unpack to more than `length` bytes. */
export const decompress = (bytes: Uint8Array, encoding: Encoding, length: number): Buffer =>
  (encoding === 'gz' ? gunzipSync : brotliDecompressSync)(bytes, { maxOutputLength: length });
