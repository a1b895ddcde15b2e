/**
 * Reads recognised files of the same form into a raw source.
 */
import { InputError } from '../errors.ts';
import type { Store } from '../store/duckdb.ts';
import { duckdbMessage, isAboutFile, printable } from '../store/failures.ts';
import type { BlockRange } from './blockRange.ts';
import { whereBroken } from './brokenJson.ts';
import { type InputLimits, memberNamedIn, type Numbered, type RawSource } from './rawSource.ts';
import { readJson } from './readJson.ts';
import type { ReadProgress } from './readProgress.ts';
import { readTable } from './readTable.ts';

/**
 * Reads files of one group of `groupAlike`. A Parquet table with integer heights is limited to the rows in `range` and
 * the rows with an invalid height. Every other form is read in full.
 *
 * Throws an InputError when a file cannot be read as a whole: broken syntax or unsuitable column types.
 */
export async function readSource(
  files: readonly Numbered[],
  range: BlockRange | undefined,
  limits: InputLimits,
  store: Store,
  progress: ReadProgress,
): Promise<RawSource> {
  const [first] = files;
  if (first === undefined) throw new Error('no files to read');
  const members = files.map(({ id, file, path, bytes }) => ({ id, file, path, bytes }));
  try {
    if (!('layout' in first)) return await readTable(first, members, range, limits, store, progress);
    return await readJson(first, members, limits, store, progress);
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const what = 'layout' in first ? 'JSON' : first.format === 'csv' ? 'CSV' : 'Parquet';
    const culprit = memberNamedIn(members, error);
    const byLine = 'layout' in first && first.layout === 'newline_delimited';
    const place = 'layout' in first && culprit !== undefined ? await whereBroken(culprit.path, culprit.bytes, byLine) : undefined;
    throw new InputError(`${culprit?.file.name} is broken ${what}: ${printable(place ?? duckdbMessage(error))}`);
  }
}
