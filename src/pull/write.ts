/**
 * Files that are whole from the moment that they are there: written aside, forced to the disk, and renamed.
 */
import { createWriteStream, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { BuildError, codeOf, messageOf } from '../errors.ts';
import { CHECKSUM_ENDING, checksumText, sha256Of } from '../input/checksums.ts';
import { type Block, blockText } from './block.ts';
import { blockFile, WORK_FOLDER } from './held.ts';
import type { Fetched } from './source.ts';

const compress = promisify(gzip);

let count = 0;

/** A path for a working file that nobody else uses. */
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
 * Puts a file that was written aside into its place, and its checksum beside it. The old checksum goes first: a pull that is killed on the way leaves
 * a file without a checksum, never one with another's.
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

/**
 * Saves a stream as a file. Throws a BuildError when the disk fails, and otherwise the stream's own error. `pipeline` passes one stream's error on
 * to the other, so the first of the two events tells which one failed.
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

/** Whether an error says that the disk is full: the system's own, or DuckDB's, which has no code. */
export const isDiskFull = (error: unknown): boolean => codeOf(error) === 'ENOSPC' || /No space left|ould not write/.test(messageOf(error));

/** The error for a disk that fails. */
export const writeError = (folder: string, error: unknown): BuildError =>
  new BuildError(isDiskFull(error) ? `the disk of ${folder} is full` : `${folder} cannot be written: ${messageOf(error)}`, [
    'Make room or change its rights; the same command goes on from here.',
  ]);
