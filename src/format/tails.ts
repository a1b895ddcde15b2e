/**
 * Each file of an archive has its content and then its tail: the SHA-256 digests of all pieces of the content. The name of the file is the
 * SHA-256 of the tail. So a reader that trusts a name can check any part of the file, and needs to read little more than that part.
 */

/** Bytes of content per piece, except the last. Smaller pieces need longer tails, and larger ones make readers read more than they need. */
export const PIECE_BYTES = 16 * 1024;

export const DIGEST_BYTES = 32;

/** Returns the size of a file with `bytes` bytes of content: content and tail. */
export const sizeOf = (bytes: number): number => bytes + Math.ceil(bytes / PIECE_BYTES) * DIGEST_BYTES;

/** Returns the number of bytes of content in a file of `size` bytes. The inverse of `sizeOf`. */
export const contentIn = (size: number): number => size - Math.ceil(size / (PIECE_BYTES + DIGEST_BYTES)) * DIGEST_BYTES;
