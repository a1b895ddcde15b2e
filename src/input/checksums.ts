/**
 * Computes the SHA-256 of input files, and reads the expected values. They are in a `.sha256` file beside the input, or
 * in a build's list of Parquet files. DuckDB neither writes nor checks the checksums of the Parquet format.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { bulkFiles } from '../contract/parquetSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import { codeOf, InputError } from '../errors.ts';
import { CHECKSUM_ENDING, type InputFile } from './discover.ts';
import { unreadable } from './unreadable.ts';

/** File name of a build's list of Parquet files. */
const LIST = 'index.json';

/** Returns the content of a checksum file, as `sha256sum --check` reads it. */
export const checksumText = (path: string, sha256: string): string => `${sha256}  ${basename(path)}\n`;

/** Returns the SHA-256 of a file, 64 hex digits. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  const handle = await open(path);
  try {
    const buffer = Buffer.allocUnsafe(1 << 20);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length);
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

export class Checksums {
  /** SHA-256 of Parquet files: by folder, then by file name in the folder's list. */
  readonly #lists = new Map<string, ReadonlyMap<string, string>>();

  /** Returns the expected SHA-256, if there is one. Throws an InputError for an invalid checksum file or list. */
  expected(file: InputFile): string | undefined {
    const text = readIfThere(`${file.path}${CHECKSUM_ENDING}`, `${file.name}${CHECKSUM_ENDING}`);
    if (text === undefined) return this.#listBeside(file).get(basename(file.path));
    const [, sha256] = /^([0-9a-f]{64})(?:[ \t].*)?\s*$/.exec(text) ?? [];
    if (sha256 !== undefined) return sha256;
    throw new InputError(`${file.name}${CHECKSUM_ENDING} is not a valid checksum file`, [
      `It must contain 64 hex digits, two spaces and the name ${basename(file.path)}, as sha256sum writes them.`,
    ]);
  }

  #listBeside(file: InputFile): ReadonlyMap<string, string> {
    const folder = dirname(file.path);
    const known = this.#lists.get(folder);
    if (known !== undefined) return known;
    const [path, name] = [join(folder, LIST), join(dirname(file.name), LIST)];
    const list = listOf(readIfThere(path, name), name);
    this.#lists.set(folder, list);
    return list;
  }
}

/** Parses a build's list of Parquet files (rows/parquetIndex.ts). Returns no checksums for any other text. */
function listOf(text: string | undefined, name: string): ReadonlyMap<string, string> {
  if (text?.startsWith('{"ranges":') !== true) return new Map();
  try {
    return new Map(bulkFiles.parse(JSON.parse(text)).ranges.map(({ file, sha256 }) => [file, sha256]));
  } catch (error) {
    throw new InputError(`${name} is damaged: ${misfitOf(error)}`, ['It lists the Parquet files of its folder. Copy it again.']);
  }
}

function readIfThere(path: string, name: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unreadable(name, error);
  }
}
