/** Reads files of a build for the local server, never from outside the build's folder. Caches recent files. */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, lstatSync, openSync, readFileSync, realpathSync, type Stats } from 'node:fs';
import { lstat, readFile, realpath } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { isAbsence, messageOf } from '../../errors.ts';
import { PartCache } from '../../format/partCache.ts';
import { exceeds, SERVER_LIMITS, type ServerLimits } from '../../limits.ts';
import type { Files, OpenFile } from '../../pages/fileAccess.ts';
import { archiveNameOf } from '../../pages/filePaths.ts';
import { etagOfDigest } from '../http/headers.ts';
import { OpenFiles } from './openFiles.ts';

/**
 * Bytes that a decompression allocates at once. With the default of 16 KB, zlib would have to join the parts of most
 * pages and documents, which takes a quarter of the time of a decompression.
 */
const INFLATED_AT_ONCE = 64 * 1024;

/** Copies of a cached file in memory: as bytes and as text. Does not count the compressed copy, because it is small. */
const COPIES_IN_MEMORY = 2;
/** Memory overhead of a cache entry, besides its content. */
const BYTES_PER_ENTRY = 600;

/** Milliseconds for which a changed file is not cached: another change may leave its modification time the same. */
const TOO_FRESH_MS = 100;

/** Time for which the result of a folder check stays valid, in milliseconds. */
const FOLDER_MS = 1000;

/**
 * Milliseconds above which the read of a small file counts as slow. After several slow reads, reads files in other
 * threads, because synchronous reads of a slow disk would block all other requests.
 */
const SLOW_MS = 1;
/**
 * Number of consecutive slow reads that show a slow disk. A single read may be slow because another process used the
 * processor.
 */
const SLOW_IN_A_ROW = 3;
const READS_AFTER_SLOW_ONES = 100;

const compress = promisify(gzip);
/** The fastest level: twice as fast as the default, with output about a fifth larger. */
export const GZIP_LEVEL = 1;
/** The default level, for the few files of the explorer, which visitors wait for. */
const SITE_GZIP_LEVEL = 6;

export const gzipped = (bytes: Buffer, level = GZIP_LEVEL): Promise<Buffer> => compress(bytes, { level });

export const etagOf = (bytes: Buffer): string => etagOfDigest(createHash('sha256').update(bytes).digest('hex'));

/** A regular file in the build's folder. */
export class BuiltFile implements OpenFile {
  #text: string | undefined;
  #etag: string | undefined;
  #gzip: Promise<Buffer> | undefined;

  constructor(
    /** Path with symbolic links resolved. */
    readonly path: string,
    readonly stats: Stats,
    /** Content of a small file. Undefined for a large file. */
    readonly bytes: Buffer | undefined,
  ) {}

  /**
   * Returns the content with one character per byte. UTF-8 need not be decoded, because pages are cut and joined only
   * at ASCII characters. Decoding would take a third of the time of an answer.
   */
  async text(): Promise<string> {
    if (this.bytes === undefined) return readFile(this.path, 'latin1');
    this.#text ??= this.bytes.toString('latin1');
    return this.#text;
  }

  etag(bytes: Buffer): string {
    this.#etag ??= etagOf(bytes);
    return this.#etag;
  }

  /**
   * Opens a large file, which the caller must close. Size, ETag and content are those of the opened file, even if a
   * build replaces the file at the path meanwhile.
   */
  async openLarge(): Promise<LargeFile> {
    const fd = openSync(this.path, 'r');
    try {
      const stats = fstatSync(fd);
      const name = archiveNameOf(this.path);
      if (name !== undefined) return { fd, size: stats.size, etag: etagOfDigest(name) };
      if (!isSame(stats, this.stats)) return { fd, size: stats.size, etag: await etagOfOpened(fd, stats.size) };
      this.#etag ??= await etagOfOpened(fd, stats.size);
      return { fd, size: stats.size, etag: this.#etag };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  gzip(bytes: Buffer): Promise<Buffer> {
    this.#gzip ??= gzipped(bytes, this.path.endsWith('.json') ? GZIP_LEVEL : SITE_GZIP_LEVEL);
    return this.#gzip;
  }
}

/** A large file that is being sent. */
export interface LargeFile {
  readonly fd: number;
  /** Size in bytes. */
  readonly size: number;
  readonly etag: string;
}

async function etagOfOpened(fd: number, size: number): Promise<string> {
  const hash = createHash('sha256');
  // Uses no stream pipeline, because in Deno a pipeline would end the hash. Creates no stream for an empty file,
  // because an empty range is an error.
  if (size > 0) for await (const chunk of createReadStream('', { fd, autoClose: false, start: 0, end: size - 1 })) hash.update(chunk);
  return etagOfDigest(hash.digest('hex'));
}

/** File access, either synchronous or in other threads. */
interface Reading {
  lstat(path: string): Stats | undefined | Promise<Stats | undefined>;
  /** Returns a path without symbolic links. Undefined if the file, or the target of a link, does not exist. */
  realpath(path: string): string | undefined | Promise<string | undefined>;
  read(path: string): Buffer | Promise<Buffer>;
}

/**
 * Returns undefined if the error says that a file is missing, or that a folder of its path is a file. Rethrows other
 * errors.
 */
function unlessMissing(error: unknown): undefined {
  if (!isAbsence(error)) throw error;
}

function orMissing<Found>(find: () => Found): Found | undefined {
  try {
    return find();
  } catch (error) {
    return unlessMissing(error);
  }
}

const AT_ONCE: Reading = {
  lstat: (path) => orMissing(() => lstatSync(path, { throwIfNoEntry: false })),
  realpath: (path) => orMissing(() => realpathSync.native(path)),
  read: (path) => readFileSync(path),
};

const IN_THREADS: Reading = {
  lstat: (path) => lstat(path).catch(unlessMissing),
  realpath: (path) => realpath(path).catch(unlessMissing),
  read: (path) => readFile(path),
};

/** Thrown if a path of the build is not a file, or is a link that leads out of the build's folder. */
export class ForeignFileError extends Error {
  override readonly name = 'ForeignFileError';
}

/** Follows a symbolic link. Undefined if its target does not exist. */
async function follow(link: string, { lstat, realpath }: Reading): Promise<[real: string, stats: Stats] | undefined> {
  try {
    const real = await realpath(link);
    const stats = real === undefined ? undefined : await lstat(real);
    return real === undefined || stats === undefined ? undefined : [real, stats];
  } catch (error) {
    // The link is circular, or this process may not read its target.
    throw new ForeignFileError(`${link} is a symbolic link that cannot be followed (${messageOf(error)}); replace it with the file itself`);
  }
}

export class BuiltFiles implements Files<BuiltFile> {
  readonly #folders = new Map<string, { readonly isInside: boolean; readonly until: number }>();
  readonly #cached: PartCache;
  readonly #opened: OpenFiles;
  #slowReads = 0;
  #readsInThreads = 0;

  constructor(
    private readonly dir: string,
    private readonly limits: ServerLimits = SERVER_LIMITS,
    /** The clock, in milliseconds since 1970. */
    private readonly now = Date.now,
  ) {
    this.#cached = new PartCache(limits.fileBytes, undefined, 'fileBytes');
    this.#opened = new OpenFiles(limits);
  }

  /**
   * Opens a file of the build. Reads synchronously while the disk is fast: a read from the system's cache takes 20 µs.
   * An asynchronous read would switch to other threads three times, which would take most of a request's time. Rejects
   * with a ForeignFileError for a path outside the folder, and for anything that is not a file.
   */
  async open(path: string): Promise<BuiltFile | undefined> {
    if (this.#readsInThreads === 0) return this.#open(path, AT_ONCE);
    this.#readsInThreads -= 1;
    return this.#open(path, IN_THREADS);
  }

  async read(path: string, offset: number, length: number): Promise<Uint8Array | undefined> {
    if (!this.#opened.has(path)) {
      const reading = this.#readsInThreads === 0 ? AT_ONCE : IN_THREADS;
      const found = await this.#locate(path, reading);
      if (found === undefined) return undefined;
      await this.#check(path, found[0], found[1], reading);
      if (!this.#opened.has(path)) this.#opened.open(path, found[0]);
    }
    if (this.#readsInThreads === 0) return this.#timed(() => this.#opened.readAtOnce(path, offset, length));
    this.#readsInThreads -= 1;
    return this.#opened.readInThread(path, offset, length);
  }

  /** Closes the files of layout `archive`. */
  close(): void {
    this.#opened.close();
  }

  async inflate(member: Uint8Array, most: number): Promise<string> {
    return gunzipSync(member, { maxOutputLength: most, chunkSize: INFLATED_AT_ONCE }).toString('latin1');
  }

  async #open(path: string, reading: Reading): Promise<BuiltFile | undefined> {
    const found = await this.#locate(path, reading);
    if (found === undefined) return undefined;
    const [real, stats] = found;
    const cached = this.#cached.known(path) as BuiltFile | undefined;
    if (cached !== undefined && isSame(cached.stats, stats)) return cached;
    this.#cached.forget(path);
    await this.#check(path, real, stats, reading);
    const isLarge = exceeds(this.limits, 'streamedBytes', stats.size);
    const file = new BuiltFile(real, stats, isLarge ? undefined : await this.#timed(() => reading.read(real)));
    if (this.now() - Math.max(stats.mtimeMs, stats.ctimeMs) > TOO_FRESH_MS)
      this.#cached.keep(path, { value: file, bytes: BYTES_PER_ENTRY + COPIES_IN_MEMORY * (file.bytes?.length ?? 0) });
    return file;
  }

  /** Returns the real path and the stats of a file, following a symbolic link. Undefined if the file does not exist. */
  async #locate(path: string, reading: Reading): Promise<[real: string, stats: Stats] | undefined> {
    const named = `${this.dir}/${path}`;
    const found = await reading.lstat(named);
    return found?.isSymbolicLink() === true ? follow(named, reading) : found && [named, found];
  }

  /** Throws a ForeignFileError unless this is a file inside the build's folder. */
  async #check(path: string, real: string, stats: Stats, { realpath }: Reading): Promise<void> {
    // Opening a pipe would block until another process writes to it.
    if (!stats.isFile()) throw new ForeignFileError(`${path} is not a file; remove it and build again`);
    if (!(await this.#isInside(dirname(real), realpath)))
      throw new ForeignFileError(`${path} leads out of the served folder through a symbolic link; replace the link with the file itself`);
  }

  /** Runs a read, and measures whether the disk is slow. */
  async #timed<Result>(read: () => Result | Promise<Result>): Promise<Result> {
    const start = performance.now();
    const bytes = await read();
    this.#slowReads = performance.now() - start > SLOW_MS ? this.#slowReads + 1 : 0;
    if (this.#slowReads >= SLOW_IN_A_ROW && this.#readsInThreads === 0) {
      this.#slowReads = 0;
      this.#readsInThreads = READS_AFTER_SLOW_ONES;
    }
    return bytes;
  }

  /**
   * True if a folder, with symbolic links resolved, is inside the build's folder. Remembers the result for a while,
   * because the check takes as long as reading a file.
   */
  async #isInside(folder: string, realpath: Reading['realpath']): Promise<boolean> {
    const now = this.now();
    const known = this.#folders.get(folder);
    if (known !== undefined && known.until > now) return known.isInside;
    const real = await realpath(folder);
    if (real === undefined) return false;
    // The build's folder may be a link that is switched to another build while the server runs.
    const root = (await realpath(this.dir)) ?? real;
    const isInside = real === root || real.startsWith(root.endsWith(sep) ? root : root + sep);
    if (exceeds(this.limits, 'folders', this.#folders.size + 1)) this.#folders.clear();
    this.#folders.set(folder, { isInside, until: now + FOLDER_MS });
    return isInside;
  }
}

/** True if both stats are of the same file, and nobody wrote to it between the two `stat` calls. */
const isSame = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.dev === b.dev;
