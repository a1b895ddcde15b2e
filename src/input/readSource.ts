/** Reads recognised files of the same form into a raw source. */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { duckdbMessage, isAboutFile, printable } from '../duckdb/duckdbErrors.ts';
import { InputError, messageOf } from '../errors.ts';
import { memberNamedIn, type RawSource, type Reading } from './rawSource.ts';
import { readJson } from './readJson.ts';
import { isBlank, LONGEST_LINE, linesOf } from './readLines.ts';
import { readTable } from './readTable.ts';
import type { Recognised } from './recognise.ts';

/**
 * Reads the files of one group of `groupAlike`. From a Parquet table with integer heights, reads only the rows in `range` and the rows with
 * an invalid height. From other files, reads all rows. Throws an InputError when a file has broken syntax or an unsuitable column type.
 */
export async function readSource(files: readonly Recognised[], reading: Reading): Promise<RawSource> {
  const [first] = files;
  if (first === undefined) throw new Error('no files to read');
  const words = { parquet: 'Parquet', csv: 'CSV' };
  const isTable = first.format === 'parquet' || first.format === 'csv';
  try {
    return await (isTable ? readTable : readJson)(first, files, reading);
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const culprit = memberNamedIn(files, error) ?? first;
    const place = isTable ? undefined : await whereBroken(culprit);
    throw new InputError(
      `${culprit.file.name} is broken ${isTable ? words[first.format] : 'JSON'}: ${printable(place ?? duckdbMessage(error))}`,
    );
  }
}

/** Maximum size in bytes of a JSON file that is parsed in one piece to find a syntax error. */
const WHOLE_FILE_BYTES = 64 * 1024 * 1024;

/**
 * Finds a syntax error in a JSON file, because the line number in DuckDB's message may be too high by one. Returns the line and the reason,
 * such as `line 3: Unterminated string ...`. Returns undefined if no error is found, or if the file is large and not NDJSON.
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
    // JSON.stringify writes an unpaired surrogate as an escape, because UTF-8 cannot encode the surrogate. The pattern finds this escape.
    const text = JSON.stringify(JSON.parse(bytes.toString('utf8')));
    return /(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text) ? 'an unpaired surrogate (\\ud800 to \\udfff)' : undefined;
  } catch (error) {
    return messageOf(error);
  }
}
