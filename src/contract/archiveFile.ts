/** Makes and checks files of an archive. A file is its content, followed by a tail of digests (format/tails.ts). */
import { createHash } from 'node:crypto';
import { contentIn, DIGEST_BYTES, PIECE_BYTES, sizeOf } from '../format/tails.ts';

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();

/** Returns the file with this content, which may be in parts, and its name: 64 hex digits. */
export function sealFile(content: Uint8Array | readonly Uint8Array[]): { readonly name: string; readonly file: Buffer } {
  const parts = [content].flat();
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const file = Buffer.concat(parts, sizeOf(length));
  for (let at = 0, to = length; at < length; at += PIECE_BYTES, to += DIGEST_BYTES)
    sha256(file.subarray(at, Math.min(at + PIECE_BYTES, length))).copy(file, to);
  return { name: sha256(file.subarray(length)).toString('hex'), file };
}

/** Returns the content of a file. Undefined if the file's digests do not match its content or its name. */
export function openFile(name: string, file: Buffer): Buffer | undefined {
  const content = file.subarray(0, contentIn(file.length));
  const tail = file.subarray(content.length);
  if (tail.length < DIGEST_BYTES || sha256(tail).toString('hex') !== name) return undefined;
  for (let i = 0; i * DIGEST_BYTES < tail.length; i += 1) {
    const piece = content.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES);
    if (sha256(piece).compare(tail, i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES) !== 0) return undefined;
  }
  return content;
}
