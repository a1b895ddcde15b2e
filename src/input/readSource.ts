/** Reads recognised files of the same form into a raw source. */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { duckdbMessage, isAboutFile, printable } from '../duckdb/duckdbErrors.ts';
import { InputError, messageOf } from '../errors.ts';
import { memberNamedIn, type RawSource, type Reading } from './rawSource.ts';
import { readJson } from './readJson.ts';
import { readTable } from './readTable.ts';
import type { Recognised } from './recognise.ts';

/** Reads the files of one group of `groupAlike`. Throws an InputError when a file has broken syntax or an unsuitable column type. */
export async function readSource(files: readonly Recognised[], reading: Reading): Promise<RawSource> {
  const [first] = files;
  if (first === undefined) throw new Error('no files to read');
  const table = first.format === 'parquet' ? 'Parquet' : first.format === 'csv' ? 'CSV' : undefined;
  try {
    return await (table ? readTable : readJson)(first, files, reading);
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const culprit = memberNamedIn(files, error) ?? first;
    const place = table ? undefined : await whereBroken(culprit);
    throw new InputError(`${culprit.file.name} is broken ${table ?? 'JSON'}: ${printable(place ?? duckdbMessage(error))}`);
  }
}

/** Maximum size in bytes of a JSON file that is parsed in one piece to find a syntax error. */
const WHOLE_FILE_BYTES = 64 * 1024 * 1024;

/**
 * Returns line and reason of a syntax error, because the line in DuckDB's message may be too high by one. Undefined if none is found, or if
 * the file is large and not NDJSON.
 */
async function whereBroken({ path, bytes, format }: Recognised): Promise<string | undefined> {
  if (format !== 'newline_delimited') return bytes > WHOLE_FILE_BYTES ? undefined : reason(await readFile(path));
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    if (bytes.length > LONGEST_LINE) return `line ${line} is longer than ${LONGEST_LINE / 2 ** 20} MiB`;
    const broken = isBlank(bytes) ? undefined : reason(bytes);
    if (broken !== undefined) return `line ${line}: ${broken}`;
  }
  return undefined;
}

function reason(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return 'not UTF-8';
  try {
    // JSON.stringify writes an unpaired surrogate as an escape.
    const text = JSON.stringify(JSON.parse(bytes.toString('utf8')));
    return /(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text) ? 'an unpaired surrogate (\\ud800 to \\udfff)' : undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Maximum length of a line in bytes: DuckDB rejects longer records (LARGEST_OBJECT_BYTES in readJson.ts). */
const LONGEST_LINE = 128 * 1024 * 1024;

const LINE_FEED = 10;

/** Yields the bytes of each line of a file without its line feed. Cuts a line after LONGEST_LINE + 1 bytes, so that memory is bounded. */
export async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer) => {
    const kept = part.subarray(0, LONGEST_LINE + 1 - length);
    parts.push(kept);
    length += kept.length;
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      yield Buffer.concat(parts);
      parts = [];
      length = 0;
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield Buffer.concat(parts);
}

export const isBlank = (line: Buffer): boolean => line.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
