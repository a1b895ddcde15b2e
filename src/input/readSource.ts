/** Reads recognised files of the same form into a raw source. */

import { duckdbMessage, isAboutFile, printable } from '../duckdb/duckdbErrors.ts';
import { InputError } from '../errors.ts';
import { whereBroken } from './brokenJson.ts';
import { memberNamedIn, type Numbered, type RawSource, type Reading } from './rawSource.ts';
import { readJson } from './readJson.ts';
import { readTable } from './readTable.ts';

/**
 * Reads the files of one group of `groupAlike`: from a Parquet table with integer heights only the rows in `range` and
 * the rows with an invalid height, from other files all rows. Throws an InputError when a file has broken syntax or an
 * unsuitable column type.
 */
export async function readSource(files: readonly Numbered[], reading: Reading): Promise<RawSource> {
  const [first] = files;
  if (first === undefined) throw new Error('no files to read');
  try {
    return await ('layout' in first ? readJson(first, files, reading) : readTable(first, files, reading));
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const what = 'layout' in first ? 'JSON' : first.format === 'csv' ? 'CSV' : 'Parquet';
    const culprit = memberNamedIn(files, error);
    const byLine = 'layout' in first && first.layout === 'newline_delimited';
    const place = 'layout' in first && culprit !== undefined ? await whereBroken(culprit.path, culprit.bytes, byLine) : undefined;
    throw new InputError(`${culprit?.file.name} is broken ${what}: ${printable(place ?? duckdbMessage(error))}`);
  }
}
