/**
 * Files of a build, as the local server reads them: never one outside of the build's folder, and the ones that were asked for lately from memory.
 */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, lstatSync, openSync, readFileSync, realpathSync, type Stats } from 'node:fs';
import { lstat, readFile, realpath } from 'node:fs/promises';
import { dirname, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { codeOf, messageOf } from '../../errors.ts';
import { etagOfDigest } from '../../http/headers.ts';
import type { Files, OpenFile } from '../../pages/respond.ts';

/** Larger files are streamed; smaller ones are cheaper read at once. */
const STREAM_FROM_BYTES = 256 * 1024;

/** A file may be held as bytes, as text, and compressed, which is little. */
const TIMES_HELD = 2;
/** Beside its content. */
const BYTES_OF_AN_ENTRY = 600;
const MOST_BYTES_HELD = 128 * 1024 * 1024;

/** A file that changed within this time could change once more without its times telling. */
const TOO_FRESH_MS = 100;

/** How long a folder that was found in the build's is believed to be there, in milliseconds, and how many are remembered. */
const FOLDER_MS = 1000;
const MOST_FOLDERS = 10_000;

/** A disk that takes longer for a small file would hold up all other requests: then the next files are read in other threads. */
const SLOW_MS = 1;
/** One read is often slow because another process had the core. */
const SLOW_IN_A_ROW = 3;
const READS_AFTER_SLOW_ONES = 100;

const compress = promisify(gzip);
/** The fastest: twice as fast as the default, and what it makes is a fifth larger. */
export const GZIP_LEVEL = 1;

export const gzipped = (bytes: Buffer): Promise<Buffer> => compress(bytes, { level: GZIP_LEVEL });

/** The strong ETag of a body. */
export const etagOf = (bytes: Buffer): string => etagOfDigest(createHash('sha256').update(bytes).digest('hex'));

/** A regular file in the build's folder. */
export class BuiltFile implements OpenFile {
  /** Without links. */
  readonly path: string;
  readonly stats: Stats;
  /** The content of a small file. */
  readonly bytes: Buffer | undefined;
  #text: string | undefined;
  #etag: string | undefined;
  #gzip: Promise<Buffer> | undefined;

  constructor(path: string, stats: Stats, bytes: Buffer | undefined) {
    this.path = path;
    this.stats = stats;
    this.bytes = bytes;
  }

  /**
   * The content, a character for each byte. Pages are only cut at ASCII characters and put together again, and names hold others: to decode them and
   * encode them again would be a third of the time of a window.
   */
  async text(): Promise<string> {
    if (this.bytes === undefined) return readFile(this.path, 'latin1');
    this.#text ??= this.bytes.toString('latin1');
    return this.#text;
  }

  /** The ETag of a small file. */
  etag(bytes: Buffer): string {
    this.#etag ??= etagOf(bytes);
    return this.#etag;
  }

  /** A large file, which the caller closes: what is told of it and sent is of one file, also when a build puts another in its place. */
  async openLarge(): Promise<LargeFile> {
    const fd = openSync(this.path, 'r');
    try {
      const stats = fstatSync(fd);
      if (!isSame(stats, this.stats)) return { fd, size: stats.size, etag: await etagOfOpened(fd, stats.size) };
      this.#etag ??= await etagOfOpened(fd, stats.size);
      return { fd, size: stats.size, etag: this.#etag };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** The content of a small file, compressed. */
  gzip(bytes: Buffer): Promise<Buffer> {
    this.#gzip ??= gzipped(bytes);
    return this.#gzip;
  }
}

/** A large file while it is sent. */
export interface LargeFile {
  readonly fd: number;
  /** In bytes. */
  readonly size: number;
  readonly etag: string;
}

async function etagOfOpened(fd: number, size: number): Promise<string> {
  const hash = createHash('sha256');
  // Not by a pipeline: it ends the hash in Deno. A stream cannot be asked for no bytes.
  if (size > 0) for await (const chunk of createReadStream('', { fd, autoClose: false, start: 0, end: size - 1 })) hash.update(chunk);
  return etagOfDigest(hash.digest('hex'));
}

/** Reading at once, or in other threads. */
interface Reading {
  lstat(path: string): Stats | undefined | Promise<Stats | undefined>;
  /** Undefined when it, or what it leads to, is not there. */
  realpath(path: string): string | undefined | Promise<string | undefined>;
  read(path: string): Buffer | Promise<Buffer>;
}

const AT_ONCE: Reading = {
  lstat: (path) => {
    try {
      return lstatSync(path, { throwIfNoEntry: false });
    } catch (error) {
      return unlessMissing(error);
    }
  },
  realpath: (path) => {
    try {
      return realpathSync.native(path);
    } catch (error) {
      return unlessMissing(error);
    }
  },
  read: (path) => readFileSync(path),
};

/** A path through a file is one that is not there. */
function unlessMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error;
}

const IN_THREADS: Reading = {
  lstat: (path) => lstat(path).catch(unlessMissing),
  realpath: (path) => realpath(path).catch(unlessMissing),
  read: (path) => readFile(path),
};

/** A file of the build is a link to somewhere else, or no file. */
export class ForeignFileError extends Error {
  override readonly name = 'ForeignFileError';
}

/** What a link leads to; undefined when that is not there. */
async function follow(link: string, { lstat, realpath }: Reading): Promise<[real: string, stats: Stats] | undefined> {
  try {
    const real = await realpath(link);
    const stats = real === undefined ? undefined : await lstat(real);
    return real === undefined || stats === undefined ? undefined : [real, stats];
  } catch (error) {
    // In a circle, or where this program may not look.
    throw new ForeignFileError(`${link} is a symbolic link that cannot be followed (${messageOf(error)}); put the file itself there`);
  }
}

export class BuiltFiles implements Files<BuiltFile> {
  readonly #dir: string;
  readonly #folders = new Map<string, { readonly isInside: boolean; readonly until: number }>();
  /** In the order of last use, by path. */
  readonly #held = new Map<string, BuiltFile>();
  #bytesHeld = 0;
  #slowReads = 0;
  #readsInThreads = 0;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Three trips to the threads for each file would be most of the time of a request, so a file is read at once as long as the disk is quick: from the
   * system's memory that takes 20 µs. Rejects with a ForeignFileError for what is outside of the folder or no file.
   */
  async open(path: string): Promise<BuiltFile | undefined> {
    if (this.#readsInThreads === 0) return this.#open(path, AT_ONCE);
    this.#readsInThreads -= 1;
    return this.#open(path, IN_THREADS);
  }

  async #open(path: string, reading: Reading): Promise<BuiltFile | undefined> {
    const { lstat, realpath } = reading;
    const named = `${this.#dir}/${path}`;
    const found = await lstat(named);
    if (found === undefined) return undefined;
    const followed: [string, Stats] | undefined = found.isSymbolicLink() ? await follow(named, reading) : [named, found];
    if (followed === undefined) return undefined;
    const [real, stats] = followed;
    const held = this.#held.get(path);
    if (held !== undefined && isSame(held.stats, stats)) {
      this.#held.delete(path);
      this.#held.set(path, held);
      return held;
    }
    if (held !== undefined) this.#drop(path, held);
    // Opening a pipe would wait for a writer.
    if (!stats.isFile()) throw new ForeignFileError(`${path} is not a file; remove it and build again`);
    if (!(await this.#isInside(dirname(real), realpath)))
      throw new ForeignFileError(`${path} leads out of the served folder by a symbolic link; put the file itself there`);
    const isLarge = stats.size >= STREAM_FROM_BYTES;
    const file = new BuiltFile(real, stats, isLarge ? undefined : await this.#read(real, reading));
    if (Date.now() - Math.max(stats.mtimeMs, stats.ctimeMs) > TOO_FRESH_MS) this.#hold(path, file);
    return file;
  }

  async #read(real: string, { read }: Reading): Promise<Buffer> {
    const start = performance.now();
    const bytes = await read(real);
    this.#slowReads = performance.now() - start > SLOW_MS ? this.#slowReads + 1 : 0;
    if (this.#slowReads >= SLOW_IN_A_ROW && this.#readsInThreads === 0) {
      this.#slowReads = 0;
      this.#readsInThreads = READS_AFTER_SLOW_ONES;
    }
    return bytes;
  }

  /** Whether a folder is, without links, in the build's. Finding out takes as long as reading a file, so it is remembered for a while. */
  async #isInside(folder: string, realpath: Reading['realpath']): Promise<boolean> {
    const now = Date.now();
    const known = this.#folders.get(folder);
    if (known !== undefined && known.until > now) return known.isInside;
    const real = await realpath(folder);
    if (real === undefined) return false;
    // The build's folder may be a link too, and be turned to another build while this runs.
    const root = (await realpath(this.#dir)) ?? real;
    const isInside = real === root || real.startsWith(root.endsWith(sep) ? root : root + sep);
    if (this.#folders.size >= MOST_FOLDERS) this.#folders.clear();
    this.#folders.set(folder, { isInside, until: now + FOLDER_MS });
    return isInside;
  }

  #hold(path: string, file: BuiltFile): void {
    // Another request may have read the same file meanwhile.
    const other = this.#held.get(path);
    if (other !== undefined) this.#drop(path, other);
    this.#held.set(path, file);
    this.#bytesHeld += weightOf(file);
    for (const [oldest, other] of this.#held) {
      if (this.#bytesHeld <= MOST_BYTES_HELD) return;
      this.#drop(oldest, other);
    }
  }

  #drop(path: string, file: BuiltFile): void {
    this.#held.delete(path);
    this.#bytesHeld -= weightOf(file);
  }
}

const weightOf = (file: BuiltFile): number => BYTES_OF_AN_ENTRY + TIMES_HELD * (file.bytes?.length ?? 0);

/** Whether nothing was written between two looks at a path. */
const isSame = (a: Stats, b: Stats): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.dev === b.dev;
