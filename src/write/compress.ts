/**
 * Compressed files beside pages, for hosts that send them as they are. Their bytes depend on the version of zlib, so nothing is said of them in
 * the manifest, and verification looks at what they unpack to.
 */
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';
import type { Encoding } from '../pages/lists.ts';

/** From 6 to 9 brotli takes ten times as long and saves a hundredth of a page. */
const BROTLI_QUALITY = 6;
/** A page of 60 records takes a quarter of a millisecond at the best level, hardly more than at the fastest. */
const SIDECAR_GZIP_LEVEL = 9;

/** These bytes, compressed. */
export function compress(bytes: Uint8Array, encoding: Encoding): Buffer {
  if (encoding === 'gz') return gzipSync(bytes, { level: SIDECAR_GZIP_LEVEL });
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return brotliCompressSync(bytes, { params });
}

/** What was compressed, if it is at most `length` bytes. Throws for bytes that are damaged or unpack to more. */
export const decompress = (bytes: Uint8Array, encoding: Encoding, length: number): Buffer =>
  (encoding === 'gz' ? gunzipSync : brotliDecompressSync)(bytes, { maxOutputLength: length });
