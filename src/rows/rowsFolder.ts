/**
 * The folder of rows that pulls write, `input/pulled`:
 *
 *     index.json                                     the commit: names all files that count
 *     840000-840099-3fa04c1b0d5e6f72.parquet         rows of a hundred settled blocks, or of one newer block
 *     840000-840099-91c2a3b4c5d6e7f8.runes.parquet   the runes that these blocks etched
 *
 * Files never change, and are named by their content. Replacing the index is the only step that counts: a pull that is killed at any moment
 * leaves the old folder or the new one, and files that the index does not name, which are garbage.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type FolderIndex,
  folderIndex,
  indexText,
  isRowsName,
  KINDS,
  type Kind,
  namesOf,
  type RowFile,
  type RowsIndex,
  rowsName,
} from '../contract/rowsSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { syncFolder } from '../disk/sync.ts';
import { emptyIfMissing, InputError } from '../errors.ts';
import { sha256Of } from '../input/changedFiles.ts';
import { rowsIndexPath } from '../pages/filePaths.ts';

const INDEX_FILE = 'index.json';

export const EMPTY_INDEX: FolderIndex = { version: 1, sources: [], spent: true, runes: [], files: [] };

/** Error for a missing or damaged file of an earlier pull. */
export const lost = (what: string, folder: string): InputError =>
  new InputError(what, [`Restore it from a copy of ${folder}, or remove ${folder} and pull again.`]);

/** Undefined if the folder has no index. Throws an InputError for a damaged index, and for a folder of an older version. */
export function readIndex(folder: string): FolderIndex | undefined {
  const path = join(folder, INDEX_FILE);
  if (!existsSync(path)) {
    if (existsSync(join(folder, 'blocks.json')))
      throw new InputError(`${folder} was written by an older version of this program`, [`Remove ${folder} and pull again.`]);
    return undefined;
  }
  try {
    return folderIndex.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw lost(`${path} is damaged: ${misfitOf(error)}`, folder);
  }
}

/** Replaces the index durably if it differs, then removes files it lacks. `temporary` is in the same file system. Throws system errors. */
export function commitIndex(folder: string, index: FolderIndex, temporary: string): void {
  const [path, text] = [join(folder, INDEX_FILE), indexText(index)];
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    // The names of the files must be on the disk before an index that names them.
    syncFolder(folder);
    replaceDurably(path, text, temporary);
  }
  const named = new Set(namesOf(index));
  for (const name of emptyIfMissing(() => readdirSync(folder))) if (isRowsName(name) && !named.has(name)) rmSync(join(folder, name));
}

export function rowsIndexFile(index: RowsIndex): { path: string; sha256: string; content: Buffer } {
  const content = Buffer.from(indexText(index));
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path: rowsIndexPath(sha256), sha256, content };
}

/** Moves the file of an entry to its name in the folder, after a sync. */
export async function moveIn(folder: string, temporary: string, kind: Kind, entry: RowFile): Promise<void> {
  const file = await open(temporary, 'r');
  await file.sync().finally(() => file.close());
  renameSync(temporary, join(folder, rowsName(kind, entry)));
}

/** Throws an InputError if a file of the index is missing, has another size, or has another SHA-256. */
export async function checkFile(folder: string, kind: Kind, entry: RowFile): Promise<void> {
  const path = checkSize(folder, kind, entry);
  if ((await sha256Of(path)) !== entry.sha256) throw lost(`${path} is damaged: its SHA-256 differs from the index`, folder);
}

function checkSize(folder: string, kind: Kind, entry: RowFile): string {
  const path = join(folder, rowsName(kind, entry));
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size !== entry.bytes) throw lost(`${path} is ${size === undefined ? 'missing' : 'damaged: its size differs from the index'}`, folder);
  return path;
}

/** Throws an InputError for the first file of the index that is missing or has another size. */
export function checkSizes(folder: string, index: FolderIndex): void {
  for (const kind of KINDS) for (const entry of index[kind]) checkSize(folder, kind, entry);
}

/** The highest block up to `height` that shares no file with a block above it. */
export function wholeUpTo(index: Pick<FolderIndex, Kind>, height: number): number {
  const across = KINDS.flatMap((kind) => index[kind]).filter(({ first, last }) => first <= height && height < last);
  const whole = across.reduce((least, { first }) => Math.min(least, first - 1), height);
  return whole === height ? height : wholeUpTo(index, whole);
}

export const mirrorsUpTo = (height: number, mirrors: FolderIndex['mirrors'] = []): Pick<FolderIndex, 'mirrors'> => {
  const kept = mirrors.flatMap(({ url, blocks }) => {
    const below = blocks.filter(([first]) => first <= height).map(([first, last]): [number, number] => [first, Math.min(last, height)]);
    return below.length === 0 ? [] : [{ url, blocks: below }];
  });
  return kept.length === 0 ? {} : { mirrors: kept };
};
