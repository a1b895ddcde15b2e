/** Formats the list of a build's files of rows (contract/rowsSchemas.ts), and returns the paths of these files. */
import { createHash } from 'node:crypto';
import type { RowsIndex } from '../contract/rowsSchemas.ts';
import { rowFilePath, rowRunesPath, rowsIndexPath } from '../pages/filePaths.ts';
import { UNSETTLED_BLOCKS } from '../pages/mirrorOptions.ts';
import { hundredOf } from './rowsForm.ts';

/**
 * Returns the first and last height of the file with the rows of a block. `tip` is the height of the last block read.
 */
export function rangeOfHeight(height: number, tip: number): { readonly first: number; readonly last: number } {
  const hundred = hundredOf(height);
  return hundred.last <= tip - UNSETTLED_BLOCKS ? hundred : { first: height, last: height };
}

export function rowsIndexFile({ files, ...head }: RowsIndex): { path: string; sha256: string; content: Buffer } {
  const content = Buffer.from(
    `${JSON.stringify(head).slice(0, -1)},"files":[\n${files.map((file) => JSON.stringify(file)).join(',\n')}\n]}\n`,
  );
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path: rowsIndexPath(sha256), sha256, content };
}

export const pathsOf = ({
  runes,
  files,
}: Pick<RowsIndex, 'runes'> & { readonly files: readonly Pick<RowsIndex['files'][number], 'first' | 'last' | 'sha256'>[] }): string[] => [
  rowRunesPath(runes.sha256),
  ...files.map(({ first, last, sha256 }) => rowFilePath(first, last, sha256)),
];
