/** Names, temporary files and network of the folder `pulled`, and errors of its disk and its ledger. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDiskFull } from '../duckdb/duckdbErrors.ts';
import { BuildError, emptyIfMissing, InputError, messageOf } from '../errors.ts';
import { lost } from '../rows/rowsFolder.ts';
import { DamagedStateError } from '../unspent/sortedFile.ts';

/** Subfolder of the input folder: a folder of rows (rows/rowsFolder.ts). Pulls replace and remove files only here. */
export const PULLED_FOLDER = 'pulled';

/** Subfolders for temporary files, and for the ledger of a pull from a node. Builds ignore both. */
export const [WORK_FOLDER, STATE_FOLDER] = ['.work', '.state'];

/** Throws an InputError if a source is of another network than the blocks of the folder. */
export function checkNetwork(found: string | undefined, network: string | undefined, source: string, folder: string): void {
  if (found === undefined || found === network) return;
  throw new InputError(`${source} is on the network ${network}, but ${folder} has blocks of ${found}`, [
    'Check --from, or give another folder with --to.',
  ]);
}

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

export const writeError = (folder: string, error: unknown): BuildError =>
  new BuildError(isDiskFull(error) ? `the disk of ${folder} is full` : `${folder} cannot be written: ${messageOf(error)}`, [
    'Free space or change its permissions, then run the same command again: it continues from here.',
  ]);

/** Converts errors of the ledger's files, and system errors, to errors with advice. Returns other errors unchanged. */
export function explained(folder: string, error: unknown): unknown {
  if (error instanceof DamagedStateError) return lost(error.message, folder);
  return error instanceof Error && 'syscall' in error ? writeError(folder, error) : error;
}
