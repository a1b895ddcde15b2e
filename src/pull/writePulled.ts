/** Writes files atomically: syncs a temporary file and renames it. Throws system errors, which `explained` converts. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDiskFull } from '../duckdb/duckdbErrors.ts';
import { BuildError, emptyIfMissing, messageOf } from '../errors.ts';
import { checksumText, sha256Of } from '../input/checksums.ts';
import { CHECKSUM_ENDING } from '../input/discover.ts';
import { type PulledFile, RUNES_FILE, WORK_FOLDER } from './pulledFiles.ts';

let count = 0;

export const workFile = (folder: string, ending: string): string => {
  count += 1;
  return join(folder, WORK_FOLDER, `${process.pid}-${count}${ending}`);
};

/** Removes the temporary files of this process. */
export function removeWorkFiles(folder: string): void {
  const work = join(folder, WORK_FOLDER);
  const names = emptyIfMissing(() => readdirSync(work)).filter((name) => name.startsWith(`${process.pid}-`));
  for (const name of names) rmSync(join(work, name), { force: true });
}

/**
 * Moves a temporary file to its final path and writes its checksum file. Removes the old checksum file first, so that a
 * killed pull may leave a file without a checksum, but never one with the checksum of another file.
 */
export async function putInPlace(folder: string, temporary: string, path: string): Promise<void> {
  const checksum = `${join(folder, path)}${CHECKSUM_ENDING}`;
  await sync(temporary);
  writeFileSync(`${temporary}${CHECKSUM_ENDING}`, checksumText(path, await sha256Of(temporary)), { flush: true });
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  rmSync(checksum, { force: true });
  renameSync(temporary, join(folder, path));
  renameSync(`${temporary}${CHECKSUM_ENDING}`, checksum);
}

/**
 * Replaces the table of runes if it differs. An unchanged file keeps its modification time, so builds need not read it.
 */
export async function putRunes(folder: string, temporary: string): Promise<void> {
  const path = join(folder, RUNES_FILE);
  const isSame = existsSync(path) && hasChecksum(path) && readFileSync(path).equals(readFileSync(temporary));
  if (!isSame) await putInPlace(folder, temporary, RUNES_FILE);
}

/** Syncs a file to disk without blocking the event loop. */
async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export const hasChecksum = (path: string): boolean => existsSync(`${path}${CHECKSUM_ENDING}`);

/** Removes pulled files, each after its checksum, so that a killed pull cannot leave a checksum without a file. */
export function removeFiles(folder: string, files: readonly Pick<PulledFile, 'path'>[]): void {
  for (const { path } of files) for (const ending of [CHECKSUM_ENDING, '']) rmSync(join(folder, `${path}${ending}`), { force: true });
}

export const writeError = (folder: string, error: unknown): BuildError =>
  new BuildError(isDiskFull(error) ? `the disk of ${folder} is full` : `${folder} cannot be written: ${messageOf(error)}`, [
    'Free space or change its permissions, then run the same command again: it continues from here.',
  ]);

/** Converts a system error about a file of the folder to a BuildError. Returns other errors unchanged. */
export const explained = (folder: string, error: unknown): unknown =>
  error instanceof Error && 'syscall' in error ? writeError(folder, error) : error;
