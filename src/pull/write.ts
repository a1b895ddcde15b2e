/**
 * Writes files atomically: to a temporary file, synced to disk, then renamed.
 */
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ActivityRecord } from '../contract/contractJson.ts';
import { BuildError, messageOf } from '../errors.ts';
import { checksumText, sha256Of } from '../input/checksums.ts';
import { CHECKSUM_ENDING } from '../input/discover.ts';
import { isDiskFull } from '../store/failures.ts';
import { CheckedBlock } from './block.ts';
import { blockFile, type PulledFile, WORK_FOLDER } from './pulledFiles.ts';

const compress = promisify(gzip);

let count = 0;

/** A file that was fetched and moved to its final path. */
export interface Fetched {
  /** Relative to the folder `pulled`. */
  readonly path: string;
  readonly records: number;
  readonly bytes: number;
}

/** Returns a unique path for a temporary file. */
export const workFile = (folder: string, ending: string): string => {
  count += 1;
  return join(folder, WORK_FOLDER, `${process.pid}-${count}${ending}`);
};

/** Characters of records that are compressed at once, as one gzip member. */
const MEMBER_LENGTH = 4 * 1024 * 1024;

/**
 * Writes a block's file: one JSON record per line, or `[]` for a block without records. Records are added page by page,
 * so that a block of any size takes little memory.
 */
class BlockFile {
  readonly #folder: string;
  readonly #block: CheckedBlock;
  readonly #temporary: string;
  #pending: string[] = [];
  #length = 0;
  #bytes = 0;

  constructor(folder: string, height: number) {
    this.#folder = folder;
    this.#block = new CheckedBlock(height);
    this.#temporary = workFile(folder, '.gz');
  }

  /** Adds records in served order. Rejects with a BadBlockError for a record that does not belong there. */
  async add(records: readonly ActivityRecord[]): Promise<void> {
    for (const record of records) {
      this.#block.add(record);
      await this.#write(`${JSON.stringify(record)}\n`);
    }
  }

  /** Puts the file in place, if `check` does not throw for the identity of its block. */
  async place(check: (digest: string) => void = () => undefined): Promise<Fetched> {
    const { records, digest } = this.#block.end();
    check(digest);
    if (records === 0) await this.#write('[]\n');
    const path = blockFile(this.#block.height, digest);
    try {
      await this.#flush(true);
      mkdirSync(dirname(join(this.#folder, path)), { recursive: true });
      await rename(this.#temporary, join(this.#folder, path));
    } catch (error) {
      throw writeError(this.#folder, error);
    }
    return { path, records, bytes: this.#bytes };
  }

  /** Removes the temporary file, unless it was put in place. */
  drop(): void {
    rmSync(this.#temporary, { force: true });
  }

  async #write(line: string): Promise<void> {
    this.#pending.push(line);
    this.#length += line.length;
    if (this.#length < MEMBER_LENGTH) return;
    try {
      await this.#flush(false);
    } catch (error) {
      throw writeError(this.#folder, error);
    }
  }

  async #flush(isLast: boolean): Promise<void> {
    const bytes = this.#length === 0 ? Buffer.alloc(0) : await compress(this.#pending.join(''));
    [this.#pending, this.#length] = [[], 0];
    const file = await open(this.#temporary, 'a');
    try {
      await file.appendFile(bytes);
      if (isLast) await file.sync();
    } finally {
      await file.close();
    }
    this.#bytes += bytes.length;
  }
}

/** Writes a block's file with the records that `fill` adds, and puts it in place if `check` does not throw for its digest. */
export async function writeBlock(
  folder: string,
  height: number,
  fill: (file: Pick<BlockFile, 'add'>) => Promise<void>,
  check?: (digest: string) => void,
): Promise<Fetched> {
  const file = new BlockFile(folder, height);
  try {
    await fill(file);
    return await file.place(check);
  } finally {
    file.drop();
  }
}

/**
 * Moves a temporary file to its final path and writes its checksum file. Removes the old checksum first, so a pull that
 * is killed can leave a file without a checksum, but never with a wrong one.
 */
export async function putInPlace(folder: string, temporary: string, path: string): Promise<void> {
  const checksum = `${join(folder, path)}${CHECKSUM_ENDING}`;
  try {
    const file = await open(temporary, 'r');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    writeFileSync(`${temporary}${CHECKSUM_ENDING}`, checksumText(path, await sha256Of(temporary)), { flush: true });
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    rmSync(checksum, { force: true });
    renameSync(temporary, join(folder, path));
    renameSync(`${temporary}${CHECKSUM_ENDING}`, checksum);
  } catch (error) {
    throw writeError(folder, error);
  }
}

/** Whether a file has a checksum file beside it. */
export const hasChecksum = (path: string): boolean => existsSync(`${path}${CHECKSUM_ENDING}`);

/**
 * Removes pulled files. Removes a checksum before its file, so a pull that is killed cannot leave a checksum without a
 * file.
 */
export function removeFiles(folder: string, files: readonly PulledFile[]): void {
  try {
    for (const { path } of files) {
      for (const ending of [CHECKSUM_ENDING, '']) rmSync(join(folder, `${path}${ending}`), { force: true });
    }
  } catch (error) {
    throw writeError(folder, error);
  }
}

/**
 * Saves a stream as a file. Throws a BuildError if the disk fails, otherwise the stream's own error. `pipeline` passes
 * an error to both streams, so the stream with the first error event is the cause.
 */
export async function saveStream(folder: string, stream: Readable, path: string, signal: AbortSignal): Promise<void> {
  let first: { readonly error: unknown } | undefined;
  stream.once('error', (error) => {
    first ??= { error };
  });
  const file = createWriteStream(path).once('error', (error) => {
    first ??= { error: writeError(folder, error) };
  });
  try {
    await pipeline(stream, file, { signal });
  } catch (error) {
    throw first === undefined ? error : first.error;
  }
}

/** Makes the error for a folder that cannot be written. */
export const writeError = (folder: string, error: unknown): BuildError =>
  new BuildError(isDiskFull(error) ? `the disk of ${folder} is full` : `${folder} cannot be written: ${messageOf(error)}`, [
    'Free space or change its permissions, then run the same command again: it continues from here.',
  ]);
