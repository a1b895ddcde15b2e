/**
 * Schema of the index of published files of rows, `rows/index-….json`. It has no times: equal rows give equal bytes.
 */
import { z } from 'zod';
import { hex64 } from './schemas.ts';
import { blocksFile } from './sources.ts';

const integer = z.int().min(0);

const file = {
  rows: integer.describe('Number of rows.'),
  bytes: z.int().min(1).describe('Size of the file, in bytes.'),
  sha256: hex64.describe('SHA-256 of the file: 64 hex digits. The first 16 are in its name.'),
  digest: hex64.describe('SHA-256 of the rows in the order of the file, each as a JSON array of its cells and a line feed.'),
};
const runesFile = z.strictObject(file).describe('The file `rows/runes-<first 16 digits of sha256>.parquet`.');
const rowFile = z
  .strictObject({
    first: integer.describe('First height that the file covers.'),
    last: integer.describe('Last height that the file covers.'),
    ...file,
  })
  .describe('The file `rows/<first>-<last>-<first 16 digits of sha256>.parquet`.');

/** The index begins with the fields of `blocks.json`, which tell which blocks were read. */
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
