/**
 * Schema of the index of published files of rows, `rows/index-….json`. It has no times: equal rows give equal bytes.
 */
import { z } from 'zod';
import { count, objectOf } from './schemaParts.ts';
import { hex64 } from './schemas.ts';
import { blocksFile } from './sources.ts';

const file = {
  rows: count.describe('Number of rows.'),
  bytes: z.int().min(1).describe('Size of the file, in bytes.'),
  sha256: hex64.describe('SHA-256 of the file: 64 hex digits. The first 16 are in its name.'),
  digest: hex64.describe('SHA-256 of the rows in the order of the file, each as a JSON array of its cells and a line feed.'),
};
const runesFile = objectOf('The file `rows/runes-<first 16 digits of sha256>.parquet`.', file);
const rowFile = objectOf('The file `rows/<first>-<last>-<first 16 digits of sha256>.parquet`.', {
  first: count.describe('First height that the file covers.'),
  last: count.describe('Last height that the file covers.'),
  ...file,
});

/** The index begins with the fields of `blocks.json` (`blocksFile`), which say which blocks were read. */
export const rowsIndex = blocksFile
  .extend({
    spent: z.boolean().describe('True if the rows have the column `spent`, because all of them are from a node.'),
    runes: runesFile,
    files: z
      .array(rowFile)
      .describe('Heights ascending. A file covers a hundred settled heights or one newer block. Heights without rows have no file.'),
  })
  .describe('The ledger rows of all blocks, as Parquet files.');
export type RowsIndex = z.infer<typeof rowsIndex>;
export type RowFile = RowsIndex['files'][number];
export type RunesFile = RowsIndex['runes'];
