/** Formats the published index of rows (contract/rowsSchemas.ts). */
import { createHash } from 'node:crypto';
import { indexText, type RowsIndex } from '../contract/rowsSchemas.ts';
import { rowsIndexPath } from '../pages/filePaths.ts';

export function rowsIndexFile(index: RowsIndex): { path: string; sha256: string; content: Buffer } {
  const content = Buffer.from(indexText(index));
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { path: rowsIndexPath(sha256), sha256, content };
}
