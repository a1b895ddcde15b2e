/** Puts files of rows into a folder of rows. */
import { statSync } from 'node:fs';
import type { Kind, RowFile } from '../../src/contract/rowsSchemas.ts';
import { sha256Of } from '../../src/input/changedFiles.ts';
import { moveIn } from '../../src/rows/rowsFolder.ts';

/** Moves a finished file to its name in the folder, after a sync. Returns its entry for the index. */
export async function placeFile(
  folder: string,
  temporary: string,
  kind: Kind,
  { first, last }: Pick<RowFile, 'first' | 'last'>,
  { rows, digest }: Pick<RowFile, 'rows' | 'digest'>,
): Promise<RowFile> {
  const entry = { first, last, rows, bytes: statSync(temporary).size, sha256: await sha256Of(temporary), digest };
  await moveIn(folder, temporary, kind, entry);
  return entry;
}
