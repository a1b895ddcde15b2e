/** Compresses pages and documents. The bytes depend on the version of zlib, so `npm run verify` compares the unpacked bytes. */
import { promisify } from 'node:util';
import { gunzipSync, gzip, gzipSync, type ZlibOptions } from 'node:zlib';
import { BuildError } from '../../errors.ts';
import { MOST_INFLATED, mostInflated } from '../../format/root.ts';

/** Gzip level. It takes as long as level 1, for pages that are 2 % smaller. Level 6 makes them 8 % smaller, in 1.7 times the time. */
const MEMBER_LEVEL = 3;
/** Window of documents, as a power of two in bytes: near matches take fewer bits. 15 takes half more time, for files that are 2 % larger. */
export const DOCUMENT_WINDOW = 12;
const PAGE_WINDOW = 15;
/** Offset of the byte of a gzip header that names the operating system: 255 (unknown), so that all systems write equal bytes. */
const SYSTEM_AT = 9;

/** Bytes that most pages and documents take at most. They are unpacked in one piece. */
const USUAL_PAGE = 32 * 1024;

function checkMember(length: number): void {
  if (length <= MOST_INFLATED) return;
  throw new BuildError(`a page has ${length} bytes, more than the ${MOST_INFLATED} that layout archive allows`, [
    'Use a smaller largest page size with --page-sizes, or layout files.',
  ]);
}

/** Compresses bytes into one gzip member. Throws a BuildError for too many bytes. */
export function gzipMember(bytes: Uint8Array, windowBits = PAGE_WINDOW): Buffer {
  checkMember(bytes.length);
  return ofAnySystem(gzipSync(bytes, { level: MEMBER_LEVEL, windowBits }));
}

/** Like `gzipMember`, in a thread of Node. Throws for too many bytes. The caller must not change the bytes meanwhile. */
export function gzipMemberInPool(bytes: Uint8Array, windowBits: number): Promise<Buffer> {
  checkMember(bytes.length);
  return gzipInPool(bytes, { level: MEMBER_LEVEL, windowBits }).then(ofAnySystem);
}

const gzipInPool: (bytes: Uint8Array, options: ZlibOptions) => Promise<Buffer> = promisify(gzip);

function ofAnySystem(member: Buffer): Buffer {
  member[SYSTEM_AT] = 255;
  return member;
}

/** Unpacks a gzip member of an archive. Throws if the member is damaged or larger than a build allows. */
export const inflateBytes = (member: Uint8Array): Buffer =>
  gunzipSync(member, { maxOutputLength: mostInflated(member), chunkSize: USUAL_PAGE });

/** Unpacks a gzip member into text, like `inflateBytes`. */
export const inflate = (member: Uint8Array): string => inflateBytes(member).toString();
