/**
 * Tails: each file of an archive ends with the SHA-256 of each piece of its content. The name of the file is the SHA-256
 * of this tail. So a reader that trusts a name can check any part of the file, and reads little more than that part.
 */

/** Bytes of content per piece. The last piece of a file may be shorter. Smaller pieces make longer tails. */
export const PIECE_BYTES = 16 * 1024;

/** Bytes of a SHA-256. */
export const DIGEST_BYTES = 32;

/** Returns the size of a file with `bytes` bytes of content: content and tail. */
export const sizeOf = (bytes: number): number => bytes + Math.ceil(bytes / PIECE_BYTES) * DIGEST_BYTES;

/** Returns the bytes of content in a file of this size. The inverse of `sizeOf`. */
export const contentIn = (size: number): number => size - Math.ceil(size / (PIECE_BYTES + DIGEST_BYTES)) * DIGEST_BYTES;
