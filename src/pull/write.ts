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
import { BuildError, codeOf, messageOf } from '../errors.ts';
import { CHECKSUM_ENDING, checksumText, sha256Of } from '../input/checksums.ts';
import { type Block, blockText } from './block.ts';
import { blockFile, type PulledFile, WORK_FOLDER } from './pulledFiles.ts';
import type { Fetched } from './source.ts';

const compress = promisify(gzip);

let count = 0;

/** Returns a unique path for a temporary file. */
export const workFile = (folder: string, ending: string): string => {
  count += 1;
  return join(folder, WORK_FOLDER, `${process.pid}-${count}${ending}`);
};

/** Writes a block's file. */
export async function writeBlock(folder: string, block: Block): Promise<Fetched> {
  const bytes = await compress(blockText(block));
  const path = blockFile(block.height, block.digest);
  const temporary = workFile(folder, '.gz');
  try {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(folder, path));
  } catch (error) {
    throw writeError(folder, error);
  }
  return { path, records: block.records, bytes: bytes.length };
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

/** Recognises errors about a full disk. DuckDB's errors have no code, so their message is searched. */
export const isDiskFull = (error: unknown): boolean => codeOf(error) === 'ENOSPC' || /No space left|ould not write/.test(messageOf(error));

/** Makes the error for a folder that cannot be written. */
export const writeError = (folder: string, error: unknown): BuildError =>
  new BuildError(isDiskFull(error) ? `the disk of ${folder} is full` : `${folder} cannot be written: ${messageOf(error)}`, [
    'Free space or change its permissions, then run the same command again: it continues from here.',
  ]);
