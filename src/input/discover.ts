/** Finds the input files of the `--input` flags. */
import { type Dirent, existsSync, readdir, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import fg from 'fast-glob';
import { isIndexName, isRowsName, namesOf } from '../contract/rowsSchemas.ts';
import { BuildError, type CliError, codeOf, InputError, messageOf } from '../errors.ts';
import { plainCall } from '../program.ts';
import { readIndex } from './blocksRead.ts';

/** Suffix of checksum files: `a.csv.sha256` has the checksum of `a.csv`. */
export const CHECKSUM_ENDING = '.sha256';

export interface InputFile {
  /** Absolute path. */
  readonly path: string;
  /** Path in messages: relative to the working directory, with forward slashes. */
  readonly name: string;
}

/**
 * Returns the files of all inputs, without duplicates, sorted by name. An input is a folder, a file or a glob. Searches
 * folders recursively, and ignores hidden files, Markdown files and checksums in them. Skips files in the build's `own`
 * folders. Throws an InputError for an input that does not exist or has no files.
 */
export async function discover(inputs: readonly string[], own: readonly string[] = [], cwd = process.cwd()): Promise<InputFile[]> {
  const found = new Map<string, InputFile>();
  const ownFolders = own.filter((folder) => existsSync(folder)).map((folder) => realpathSync(folder) + sep);
  for (const input of inputs) {
    const paths = await expand(input, cwd);
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

async function expand(input: string, cwd: string): Promise<string[]> {
  const path = resolve(cwd, input);
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return [path];
    const files = walk(path);
    if (files.length > 0) return files;
    throw noData(`the input folder ${input} has no data files`);
  }
  if (fg.isDynamicPattern(input)) {
    const files = await match(input.split(sep).join('/'), cwd);
    if (files.length > 0) return files;
    throw new InputError(`the input pattern ${input} matches no file`, ['Quote the pattern and check its folder.']);
  }
  throw new InputError(`input not found: ${input}`, [`The full path is ${path}. Relative paths start at the working directory.`]);
}

/** Returns the error for missing input, with the ways to get some. */
export const noData = (message: string): InputError =>
  new InputError(message, [
    `Fetch blocks with ${plainCall('pull')}, or name your data with --input: NDJSON, JSON, CSV or Parquet files; docs/input.md of the project lists the formats.`,
    `To try the program, write sample data with ${plainCall('sample')}, and build with --input sample.`,
  ]);

/** True for files that are not data: hidden files, Markdown and checksums. */
const isIgnored = (name: string): boolean => name.startsWith('.') || name.endsWith('.md') || name.endsWith(CHECKSUM_ENDING);

/** True when a folder exists and has data files. Throws an InputError when it cannot be searched. */
export const hasDataFiles = (folder: string): boolean => existsSync(folder) && statSync(folder).isDirectory() && walk(folder).length > 0;

/**
 * Lists all files below a folder. Visits each folder once, identified by its real path, so that circular links cause no
 * endless loop. Follows links last. So a file in the folder is listed under its own path, even if links lead to the
 * file.
 */
function walk(root: string): string[] {
  const files: string[] = [];
  const links: string[] = [];
  const visited = new Set<string>();
  const visit = (folder: string) => {
    const real = realPath(folder);
    if (visited.has(real)) return;
    visited.add(real);
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !entry.name.startsWith('.')) visit(path);
      else if (!entry.isDirectory() && !isIgnored(entry.name)) (entry.isFile() ? files : links).push(path);
    }
  };
  visit(root);
  // Visiting a folder may append to `links` during this loop. A link to anything but a folder is listed as a file
  // without a check, because realPath rejects broken links later, and stampOf rejects pipes.
  for (const path of links) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) visit(path);
    else files.push(path);
  }
  return files;
}

/**
 * Lists a folder. Leaves out files of rows that the index in the folder does not name, which are garbage of a killed pull.
 * Throws an InputError if a file that it names is missing.
 */
function entriesOf(folder: string): Dirent[] {
  for (let before: string | undefined; ; ) {
    const entries = listed(folder);
    const named = namedIn(folder, entries);
    const there = new Set(entries.map(({ name }) => name));
    const missing = [...(named ?? [])].find((name) => !there.has(name));
    if (missing === undefined) return entries.filter(({ name }) => counts(name, named));
    // A pull may have replaced the index after the folder was listed, so the folder is listed again.
    const names = [...(named ?? [])].join();
    if (names === before)
      throw new InputError(`${join(folder, missing)} is missing, but the index of its folder names it`, [
        `Restore it from a copy, or remove ${folder} and pull again.`,
      ]);
    before = names;
  }
}

function listed(folder: string): Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    checkNames(folder, entries);
    return entries;
  } catch (error) {
    throw error instanceof InputError ? error : unsearchable(error);
  }
}

const counts = (name: string, named: ReadonlySet<string> | undefined): boolean =>
  named === undefined || !isRowsName(name) || named.has(name);

/**
 * Returns the names of the files of rows that the indexes in a folder name, undefined without an index. Throws an
 * InputError for a damaged index, and for the folder of an older version.
 */
function namedIn(folder: string, entries: readonly Pick<Dirent, 'name'>[]): ReadonlySet<string> | undefined {
  const paths = entries.filter(({ name }) => isIndexName(name)).map(({ name }) => join(folder, name));
  const indexes = paths.flatMap((path) => readIndex({ path, name: path }) ?? []);
  if (indexes.length > 0) return new Set(indexes.flatMap(namesOf));
  const old = entries.some(({ name }) => name === 'blocks.json') && entries.some(({ name }) => name === 'runes.parquet');
  if (old) throw new InputError(`${folder} was written by an older version of this program`, [`Remove ${folder} and pull again.`]);
  return undefined;
}

/**
 * Throws an InputError for a name with a backslash or with bytes that are not UTF-8. Node.js and glob patterns would
 * change such a name, and the new name may belong to another file.
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

/**
 * Maximum number of paths by which a pattern may reach one folder. More paths are an error, because circular links give
 * a folder infinitely many.
 */
const MOST_PATHS = 100;

/** Lists the files that match a pattern. Follows links. */
async function match(pattern: string, cwd: string): Promise<string[]> {
  const paths = new Map<string, number>();
  const check = (folder: string, entries: readonly Dirent[]) => {
    checkNames(folder, entries);
    const real = realPath(folder);
    const count = (paths.get(real) ?? 0) + 1;
    paths.set(real, count);
    if (count > MOST_PATHS)
      throw new InputError(`the input pattern ${pattern} reaches the folder ${real} by more than ${MOST_PATHS} paths, through links`, [
        'Remove circular links, or use the folder itself as the input.',
      ]);
  };
  const list: typeof readdir = ((folder: string, options: { withFileTypes: true }, done: Listed) =>
    readdir(folder, options, (error, entries) => {
      if (error !== null) return done(error, entries);
      try {
        check(folder, entries);
        done(null, entries);
      } catch (refusal) {
        done(refusal as NodeJS.ErrnoException, entries);
      }
    })) as typeof readdir;
  try {
    const found = await fg.glob(pattern, { cwd, absolute: true, onlyFiles: false, objectMode: true, fs: { readdir: list } });
    const files = found.filter(({ dirent, path }) => !dirent.isDirectory() && !path.endsWith(CHECKSUM_ENDING)).map(({ path }) => path);
    const named = new Map([...new Set(files.map(dirname))].map((folder) => [folder, namedIn(folder, listed(folder))]));
    return files.filter((path) => counts(basename(path), named.get(dirname(path))));
  } catch (error) {
    throw error instanceof InputError ? error : unsearchable(error);
  }
}

type Listed = (error: NodeJS.ErrnoException | null, entries: Dirent[]) => void;

/** Returns the error for a folder that cannot be read: bad input, unless the machine has too many open files. */
function unsearchable(error: unknown): CliError {
  if (['EMFILE', 'ENFILE'].includes(codeOf(error) ?? ''))
    return new BuildError(`too many files are open: ${messageOf(error)}`, ['Raise the limit (ulimit -n) and build again.']);
  return new InputError(`the input cannot be searched: ${messageOf(error)}`);
}
