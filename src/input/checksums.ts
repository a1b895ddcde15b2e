/**
 * Computes the SHA-256 of input files, and reads the expected values. An expected value is in a `.sha256` file beside the input, or its
 * first digits are in the name of a published file of rows. DuckDB does not check the checksums of the Parquet format itself.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { InputError } from '../errors.ts';
import { CHECKSUM_ENDING, type InputFile } from './discover.ts';
import { readable } from './unreadable.ts';

/** Returns the SHA-256 of a file, 64 hex digits. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

/** Names of files of rows, which end with the first digits of the SHA-256 (pages/filePaths.ts). */
export const NAMED_BY_CONTENT = /^(?:[0-9]+-[0-9]+|runes)-([0-9a-f]{16})(?:\.runes)?\.parquet$/;

/**
 * Returns the first digits of a file's expected SHA-256, or all digits if the file has a checksum file. Undefined without an expected
 * value. Throws an InputError for an invalid checksum file.
 */
export function expectedDigits(file: InputFile): string | undefined {
  const path = `${file.path}${CHECKSUM_ENDING}`;
  const text = existsSync(path) ? readable(`${file.name}${CHECKSUM_ENDING}`, () => readFileSync(path, 'utf8')) : undefined;
  if (text === undefined) return NAMED_BY_CONTENT.exec(basename(file.path))?.[1];
  const [, sha256] = /^([0-9a-f]{64})(?:[ \t].*)?\s*$/.exec(text) ?? [];
  if (sha256 !== undefined) return sha256;
  throw new InputError(`${file.name}${CHECKSUM_ENDING} is not a valid checksum file`, [
    `It must contain 64 hex digits, two spaces and the name ${basename(file.path)}, as sha256sum writes them.`,
  ]);
}
