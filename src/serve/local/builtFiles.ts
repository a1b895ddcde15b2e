/** Reads files of a build for the local server, never from outside the build's folder. Caches recent files. */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, openSync, readFileSync, readSync, realpathSync, type Stats, statSync } from 'node:fs';
import { sep } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGzip, gunzipSync, gzip } from 'node:zlib';
import { codeOf, isAbsence } from '../../errors.ts';
import { PartCache } from '../../format/partCache.ts';
import { exceeds, SERVER_LIMITS, type ServerLimits } from '../../limits.ts';
import type { Files, OpenFile } from '../../pages/fileAccess.ts';
import { archiveNameOf } from '../../pages/filePaths.ts';
import type { Content } from '../http/handler.ts';
import { etagOfDigest } from '../http/headers.ts';
import { contentRange, satisfy, wantedRange } from '../http/ranges.ts';

/** Bytes that a decompression allocates at once. With 16 KB, the default, zlib would join parts for a quarter of its time. */
const INFLATED_AT_ONCE = 64 * 1024;

/** Copies of a cached file in memory: as bytes and as text. The compressed copy is small. */
const COPIES_IN_MEMORY = 2;
/** Memory overhead of a cache entry, besides its content. */
export const BYTES_PER_ENTRY = 600;

/** Milliseconds for which a changed file is not cached: another change may leave its modification time the same. */
const TOO_FRESH_MS = 100;

const compress = promisify(gzip);
/** The fastest level: twice as fast as the default, with output about a fifth larger. */
const GZIP_LEVEL = 1;
/** The default level, for the few files of the explorer, which visitors wait for. */
const SITE_GZIP_LEVEL = 6;

/** A body in memory. Keeps its ETag and its compressed copy for further requests. */
export class Bytes implements Content<Readable> {
  #etag: string | undefined;

  constructor(
    readonly body: Buffer,
    private gzipped?: Uint8Array | Promise<Uint8Array>,
    private readonly level = GZIP_LEVEL,
  ) {}

  get size(): number {
    return this.body.length;
  }

  get etag(): string {
    this.#etag ??= etagOfDigest(createHash('sha256').update(this.body).digest('hex'));
    return this.#etag;
  }

  gzip(): Uint8Array | Promise<Uint8Array> {
    this.gzipped ??= compress(this.body, { level: this.level });
    return this.gzipped;
  }
}

/** A regular file in the build's folder. */
export class BuiltFile implements OpenFile {
  #text: string | undefined;
  #etag: string | undefined;

  constructor(
    /** Without symbolic links. */
    readonly path: string,
    readonly stats: Stats,
    /** Content of a small file. Undefined for a large file. */
    readonly bytes: Bytes | undefined,
  ) {}

  /** Returns the content with one character per byte. Decoding UTF-8, which nothing needs, takes a third of an answer's time. */
  async text(): Promise<string> {
    if (this.bytes === undefined) return readFileSync(this.path, 'latin1');
    this.#text ??= this.bytes.body.toString('latin1');
    return this.#text;
  }

  /**
   * Opens the file, or the part that `range` wants, to be streamed. Size, ETag and content are those of the opened file, even if a build
   * replaces the file at the path meanwhile. Files that are read by ranges are never compressed.
   */
  async open(isReadByRanges: boolean, range?: string): Promise<Content<Readable>> {
    const fd = openSync(this.path, 'r');
    const close = () => closeSync(fd);
    try {
      const stats = fstatSync(fd);
      const etag = await this.#etagOf(fd, stats);
      const wanted = wantedRange(range);
      const bytes = wanted === undefined ? { start: 0, end: stats.size - 1 } : satisfy(wanted, stats.size);
      const part = wanted && { isEmpty: bytes === undefined, place: contentRange(stats.size, bytes) };
      const stream = () => createReadStream('', { fd, ...bytes });
      const zipped = () => pipeline(stream(), createGzip({ level: GZIP_LEVEL }), () => undefined);
      const content = { body: { stream, close }, etag, part, size: bytes === undefined ? 0 : bytes.end - bytes.start + 1 };
      if (content.size > 0) return isReadByRanges ? content : { ...content, gzip: () => ({ stream: zipped, close }) };
      // A stream cannot read an empty range.
      close();
      return { ...content, body: Buffer.alloc(0) };
    } catch (error) {
      close();
      throw error;
    }
  }

  async #etagOf(fd: number, stats: Stats): Promise<string> {
    const name = archiveNameOf(this.path);
    if (name !== undefined) return etagOfDigest(name);
    if (!isSame(stats, this.stats)) return etagOfOpened(fd, stats.size);
    this.#etag ??= await etagOfOpened(fd, stats.size);
    return this.#etag;
  }
}

async function etagOfOpened(fd: number, size: number): Promise<string> {
  const hash = createHash('sha256');
  // Uses no stream pipeline, because in Deno a pipeline would end the hash. Creates no stream for an empty file, because an empty range is
  // an error.
  if (size > 0) for await (const chunk of createReadStream('', { fd, autoClose: false, start: 0, end: size - 1 })) hash.update(chunk);
  return etagOfDigest(hash.digest('hex'));
}

/** A path of the build is not a file, or is a link that leads out of the build's folder. */
export class ForeignFileError extends Error {
  override readonly name = 'ForeignFileError';
}

/** Reads synchronously: that takes 20 µs from the system's cache, and switching threads would take most of a request's time. */
export class BuiltFiles implements Files<BuiltFile> {
  readonly #cached: PartCache;
  /** Open files of layout `archive`, least recently used first. */
  readonly #opened = new Map<string, number>();

  constructor(
    private readonly dir: string,
    private readonly limits: ServerLimits = SERVER_LIMITS,
    /** The clock, in milliseconds since 1970. */
    private readonly now = Date.now,
  ) {
    this.#cached = new PartCache(limits.fileBytes, undefined, 'fileBytes');
  }

  /** Opens a file of the build. Rejects with a ForeignFileError for a path outside the folder, and for anything that is no file. */
  async open(path: string): Promise<BuiltFile | undefined> {
    const stats = this.#statsOf(path);
    if (stats === undefined) return undefined;
    const cached = this.#cached.known(path) as BuiltFile | undefined;
    if (cached !== undefined && isSame(cached.stats, stats)) return cached;
    this.#cached.forget(path);
    const real = this.#realOf(path, stats);
    const bytes = exceeds(this.limits, 'streamedBytes', stats.size) ? undefined : readFileSync(real);
    const level = real.endsWith('.json') ? GZIP_LEVEL : SITE_GZIP_LEVEL;
    const file = new BuiltFile(real, stats, bytes && new Bytes(bytes, undefined, level));
    if (this.now() - Math.max(stats.mtimeMs, stats.ctimeMs) > TOO_FRESH_MS)
      this.#cached.keep(path, { value: file, bytes: BYTES_PER_ENTRY + COPIES_IN_MEMORY * (bytes?.length ?? 0) });
    return file;
  }

  /**
   * Reads a part of a file of layout `archive`. Keeps these files open, except the least recently used ones above the limit, because
   * opening a file takes longer than reading a part of it. This is safe, because they never change.
   */
  async read(path: string, offset: number, length: number): Promise<Uint8Array | undefined> {
    let handle = this.#opened.get(path);
    if (handle === undefined) {
      const stats = this.#statsOf(path);
      if (stats === undefined) return undefined;
      handle = openSync(this.#realOf(path, stats), 'r');
    }
    this.#opened.delete(path);
    this.#opened.set(path, handle);
    for (const [oldest, other] of this.#opened) {
      if (!exceeds(this.limits, 'openFiles', this.#opened.size)) break;
      this.#opened.delete(oldest);
      closeSync(other);
    }
    const part = Buffer.allocUnsafeSlow(length);
    return readSync(handle, part, 0, length, offset) === length ? part : undefined;
  }

  /** Closes the files of layout `archive`. */
  close(): void {
    for (const handle of this.#opened.values()) closeSync(handle);
    this.#opened.clear();
  }

  async inflate(member: Uint8Array, most: number): Promise<string> {
    return gunzipSync(member, { maxOutputLength: most, chunkSize: INFLATED_AT_ONCE }).toString('latin1');
  }

  /** Returns the stats of what a path or link names. Undefined if it does not exist. */
  #statsOf(path: string): Stats | undefined {
    try {
      return statSync(`${this.dir}/${path}`, { throwIfNoEntry: false });
    } catch (error) {
      if (isAbsence(error) || codeOf(error) === 'ENAMETOOLONG') return undefined;
      // The link is circular, or this process may not read its target.
      if (!['ELOOP', 'EACCES'].includes(codeOf(error) ?? '')) throw error;
      throw new ForeignFileError(`${path} is a link that cannot be followed (${codeOf(error)}); replace it with the file itself`);
    }
  }

  /** Returns the path of a file without links. Throws a ForeignFileError unless it is a file inside the build's folder. */
  #realOf(path: string, stats: Stats): string {
    // Opening a pipe would block until another process writes to it.
    if (!stats.isFile()) throw new ForeignFileError(`${path} is not a file; remove it and build again`);
    // The build's folder may be a link that is switched to another build while the server runs.
    const root = realpathSync.native(this.dir);
    const real = realpathSync.native(`${root}/${path}`);
    if (real.startsWith(root.endsWith(sep) ? root : root + sep)) return real;
    throw new ForeignFileError(`${path} leads out of the served folder through a symbolic link; replace the link with the file itself`);
  }
}

/** True if both stats are of the same file, and nobody wrote to it between the two `stat` calls. */
const isSame = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.dev === b.dev;
