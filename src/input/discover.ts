/** Finds the input files of the `--input` flags. */
import { type Dirent, existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import fg from 'fast-glob';
import { isIndexName, isRowsName, namesOf } from '../contract/rowsSchemas.ts';
import { InputError, messageOf } from '../errors.ts';
import { plainCall } from '../program.ts';
import { readIndex } from './blocksRead.ts';
import { unreadable } from './unreadable.ts';

/** Suffix of checksum files: `a.csv.sha256` has the checksum of `a.csv`. */
export const CHECKSUM_ENDING = '.sha256';

export interface InputFile {
  /** Absolute path. */
  readonly path: string;
  /** Path for messages: relative to the working directory, with forward slashes. */
  readonly name: string;
}

/**
 * Returns the files of all inputs, without duplicates, sorted by name. An input is a folder with its subfolders, a file or a glob. Skips
 * files in the build's `own` folders. Throws an InputError for an input that does not exist or has no files.
 */
export async function discover(inputs: readonly string[], own: readonly string[] = [], cwd = process.cwd()): Promise<InputFile[]> {
  const found = new Map<string, InputFile>();
  const ownFolders = own.filter((folder) => existsSync(folder)).map((folder) => realpathSync(folder) + sep);
  for (const input of inputs) {
    const paths = expand(input, cwd);
    const files = paths.map((path) => ({ path, real: realPath(path), name: relative(cwd, path).split(sep).join('/') }));
    const outside = files.filter(({ real }) => !ownFolders.some((folder) => real.startsWith(folder)));
    if (outside.length === 0)
      throw new InputError(`the input ${input} is in the output or cache folder, whose files builds replace and remove`, [
        'Move it elsewhere, or use other folders with --out and --cache.',
      ]);
    for (const { path, real, name } of outside) if (!found.has(real)) found.set(real, { path, name });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new InputError(`the input file ${JSON.stringify(path)} cannot be opened: ${messageOf(error)}`);
  }
}

function expand(input: string, cwd: string): string[] {
  const path = resolve(cwd, input);
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return [path];
    const files = match('**', path, true);
    if (files.length > 0) return files;
    throw noData(`the input folder ${input} has no data files`);
  }
  if (fg.isDynamicPattern(input)) {
    const files = match(input.split(sep).join('/'), cwd, false);
    if (files.length > 0) return files;
    throw new InputError(`the input pattern ${input} matches no file`, ['Quote the pattern and check its folder.']);
  }
  throw new InputError(`input not found: ${input}`, [`The full path is ${path}. Relative paths start at the working directory.`]);
}

export const noData = (message: string): InputError =>
  new InputError(message, [
    `Fetch blocks with ${plainCall('pull')}, or name your data with --input: NDJSON, JSON, CSV or Parquet files; docs/input.md of the project lists the formats.`,
    `To try the program, write sample data with ${plainCall('sample')}, and build with --input sample.`,
  ]);

/** True for files that are not data: hidden files, Markdown and checksums. */
const isIgnored = (name: string): boolean => name.startsWith('.') || name.endsWith('.md') || name.endsWith(CHECKSUM_ENDING);

/** Throws an InputError when the folder cannot be searched. */
export const hasDataFiles = (folder: string): boolean =>
  existsSync(folder) && statSync(folder).isDirectory() && match('**', folder, true).length > 0;

/** Maximum number of paths by which a pattern may reach one folder. Circular links give a folder infinitely many. */
const MOST_PATHS = 100;

/** Lists the files that match a pattern. Follows links. With `once`, visits each folder once, because links may be circular. */
function match(pattern: string, cwd: string, once: boolean): string[] {
  const visits = new Map<string, number>();
  const list = (folder: string): Dirent[] => {
    const entries = entriesOf(folder);
    const real = realPath(folder);
    const count = (visits.get(real) ?? 0) + 1;
    visits.set(real, count);
    if (once && count > 1) return [];
    if (count <= MOST_PATHS) return entries;
    throw new InputError(`the input pattern ${pattern} reaches the folder ${real} by more than ${MOST_PATHS} paths, through links`, [
      'Remove circular links, or use the folder itself as the input.',
    ]);
  };
  try {
    const options = {
      cwd,
      absolute: true,
      onlyFiles: false,
      objectMode: true,
      fs: { readdirSync: list as unknown as typeof readdirSync },
    } as const;
    return fg.globSync(pattern, options).flatMap(({ dirent, name, path }) => (dirent.isDirectory() || isIgnored(name) ? [] : [path]));
  } catch (error) {
    throw error instanceof InputError ? error : unreadable('the input', error);
  }
}

/**
 * Lists a folder without the files of rows that its index does not name, which are garbage of a killed pull. Throws an InputError if a file
 * that it names is missing.
 */
function entriesOf(folder: string): Dirent[] {
  for (let before: string | undefined; ; ) {
    const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    checkNames(folder, entries);
    const named = namedIn(folder, entries);
    const there = new Set(entries.map(({ name }) => name));
    const missing = [...(named ?? [])].find((name) => !there.has(name));
    if (missing === undefined) return entries.filter(({ name }) => named === undefined || !isRowsName(name) || named.has(name));
    // A pull may have replaced the index after the folder was listed, so the folder is listed again.
    const names = [...(named ?? [])].join();
    if (names === before)
      throw new InputError(`${join(folder, missing)} is missing, but the index of its folder names it`, [
        `Restore it from a copy, or remove ${folder} and pull again.`,
      ]);
    before = names;
  }
}

/** Returns the files of rows that the indexes in a folder name, undefined without an index. Throws an InputError for an older folder. */
function namedIn(folder: string, entries: readonly Pick<Dirent, 'name'>[]): ReadonlySet<string> | undefined {
  const paths = entries.filter(({ name }) => isIndexName(name)).map(({ name }) => join(folder, name));
  const indexes = paths.flatMap((path) => readIndex({ path, name: path }) ?? []);
  if (indexes.length > 0) return new Set(indexes.flatMap(namesOf));
  const old = entries.some(({ name }) => name === 'blocks.json') && entries.some(({ name }) => name === 'runes.parquet');
  if (old) throw new InputError(`${folder} was written by an older version of this program`, [`Remove ${folder} and pull again.`]);
  return undefined;
}

/**
 * Throws an InputError for a name with a backslash or with bytes that are not UTF-8. Node.js and glob patterns would change such a name,
 * and the new name may belong to another file.
 */
function checkNames(folder: string, entries: readonly Dirent[]): void {
  const odd = entries.find(({ name }) => !name.startsWith('.') && (name.includes('\ufffd') || (sep === '/' && name.includes('\\'))));
  if (odd === undefined) return;
  const isUtf8 = !odd.name.includes('\ufffd');
  throw new InputError(
    `the input ${JSON.stringify(join(folder, odd.name))} has ${isUtf8 ? 'a backslash in its name' : 'a name that is not UTF-8'}`,
    [isUtf8 ? 'Backslashes in file names are not supported; rename the file.' : 'Rename it, or move it out of the input.'],
  );
}
