/**
 * Finds the input files that the `--input` flags name.
 */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import fg from 'fast-glob';
import { BuildError, codeOf, InputError, messageOf } from '../errors.ts';

export interface InputFile {
  /** Absolute path. */
  readonly path: string;
  /** How messages name it: relative to the working directory, with forward slashes. */
  readonly name: string;
}

/**
 * The files of all inputs, each once, in the order of their names. An input is a folder (searched whole; files that begin with a
 * dot and Markdown files are passed over), a file, or a glob. Files below the build's `own` folders are passed over. Throws an InputError for an input that is not there or holds nothing.
 */
export async function discover(inputs: readonly string[], own: readonly string[] = [], cwd = process.cwd()): Promise<InputFile[]> {
  const found = new Map<string, InputFile>();
  const ownFolders = own.filter((folder) => existsSync(folder)).map((folder) => realpathSync(folder) + sep);
  for (const input of inputs) {
    const paths = await expand(input, cwd);
    const files = paths.map((path) => ({ path, real: realPath(path), name: relative(cwd, path).split(sep).join('/') }));
    const outside = files.filter(({ real }) => !ownFolders.some((folder) => real.startsWith(folder)));
    if (outside.length === 0) {
      throw new InputError(`the input ${input} is in the output or cache folder, whose files builds replace and remove`, [
        'Move it elsewhere, or name other folders with --out and --cache.',
      ]);
    }
    for (const { path, real, name } of outside) if (!found.has(real)) found.set(real, { path, name });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new InputError(`the input file ${JSON.stringify(path)} cannot be opened: ${messageOf(error)}`, [
      'Backslashes in file names are not supported; rename the file.',
    ]);
  }
}

/** Files that fit a pattern. A folder that cannot be read is the input's fault, but for too many open files, which are the machine's. */
async function search(pattern: string, options: fg.Options): Promise<string[]> {
  try {
    return await fg.glob(pattern, options);
  } catch (error) {
    if (['EMFILE', 'ENFILE'].includes(codeOf(error) ?? '')) {
      throw new BuildError(`too many files are open: ${messageOf(error)}`, ['Raise the limit (ulimit -n) and build again.']);
    }
    throw new InputError(`the input cannot be searched: ${messageOf(error)}`);
  }
}

async function expand(input: string, cwd: string): Promise<string[]> {
  const path = resolve(cwd, input);
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return [path];
    const files = await search('**/*', { cwd: path, absolute: true, onlyFiles: true, ignore: ['**/*.md'] });
    if (files.length > 0) return files;
    throw new InputError(`the input folder ${input} holds no data files`, [
      'Put NDJSON, JSON, CSV or Parquet files there; input/README.md of the project lists the forms.',
    ]);
  }
  if (fg.isDynamicPattern(input)) {
    const files = await search(input.split(sep).join('/'), { cwd, absolute: true, onlyFiles: true });
    if (files.length > 0) return files;
    throw new InputError(`the input pattern ${input} matches no file`, ['Quote the pattern and check the folder it names.']);
  }
  throw new InputError(`the input ${input} is not there`, [
    `It was looked for at ${path}. Paths are relative to the folder that the command is run in.`,
  ]);
}
