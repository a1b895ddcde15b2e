/** Checks that all bytes read from an archive's file match the file's name (tails.ts), so readers need not trust hosts. */
import { exceeds, READER_LIMITS } from '../limits.ts';
import { ArchiveError } from './archiveError.ts';
import type { ArchiveFiles } from './archiveReader.ts';
import type { PartCache } from './partCache.ts';
import { hexOf } from './sha256.ts';
import { contentIn, DIGEST_BYTES, PIECE_BYTES } from './tails.ts';

/** Computes the SHA-256 of bytes with the functions of the platform, which are faster than sha256.ts. */
export type Digest = (bytes: Uint8Array) => Promise<Uint8Array>;

/**
 * Returns a function like `read` that also checks the bytes, for the reads of one answer. It reads the pieces with the wanted bytes, and
 * the tail of the file unless the cache `tails` has it: concurrently, or in one read if the pieces are near the end of the file. It rejects
 * with an ArchiveError for wrong bytes.
 */
export function verifiedRead(read: ArchiveFiles['read'], digest: Digest, tails: PartCache): ArchiveFiles['read'] {
  /** Pending reads of tails, by file name. Concurrent reads of a file share the read of its tail. */
  const loading = new Map<string, Promise<Uint8Array>>();
  return async (file, offset, length, size) => {
    const bytes = contentIn(size);
    const begin = offset - (offset % PIECE_BYTES);
    const end = Math.min(Math.ceil((offset + length) / PIECE_BYTES) * PIECE_BYTES, bytes);
    const hasTail = offset + length > bytes;
    // If the caller also wants bytes of the tail, does not use the cached tail: the returned bytes must be those that were checked.
    if (hasTail) tails.forget(file);
    const shared = hasTail ? undefined : loading.get(file);
    const isOne = shared === undefined && !tails.has(file) && !exceeds(READER_LIMITS, 'nearBytes', bytes - end);
    const reading = read(file, begin, (isOne ? size : end) - begin, size);
    const loadTail = async () => {
      const found = await (isOne ? reading.then((all) => all?.subarray(bytes - begin)) : read(file, bytes, size - bytes, size));
      if (found === undefined) throw new ArchiveError(`the archive's file ${file} is missing or too short`);
      if (hexOf(await digest(found)) !== file) throw wrong(file);
      // Copies the tail for the cache, because a view would also keep the pieces in memory.
      return { value: new Uint8Array(found), bytes: found.length };
    };
    const tailOf = shared ?? tails.get(file, loadTail).finally(() => loading.delete(file));
    loading.set(file, tailOf);
    const [pieces, tail] = await Promise.all([reading, tailOf]);
    if (pieces === undefined) return undefined;
    const check = async (at: number) => {
      const found = await digest(pieces.subarray(at - begin, Math.min(at + PIECE_BYTES, end) - begin));
      const expected = (at / PIECE_BYTES) * DIGEST_BYTES;
      if (found.some((byte, i) => byte !== tail[expected + i])) throw wrong(file);
    };
    await Promise.all(Array.from({ length: Math.ceil((end - begin) / PIECE_BYTES) }, (_, i) => check(begin + i * PIECE_BYTES)));
    return pieces.subarray(offset - begin, offset - begin + length);
  };
}

const wrong = (file: string): ArchiveError => new ArchiveError(`the bytes of the archive's file ${file} do not match its name`);
