/**
 * The list of bulk data, `activity/index.json`. It has no times, so that the same records make the same bytes.
 */
import { z } from 'zod';

const integer = z.int().min(0);

const bulkFile = z
  .strictObject({
    file: z
      .string()
      .regex(/^[0-9]+\.parquet$/)
      .describe('File name, beside this list: the first of its hundred heights.'),
    first: integer.describe('Lowest block of the file.'),
    last: integer.describe('Highest block of the file.'),
    blocks: z.int().min(1).describe('Number of blocks.'),
    records: z.int().min(1).describe('Number of records.'),
    bytes: integer.describe('Size in bytes.'),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .describe('SHA-256 of the content: 64 hex digits.'),
  })
  .describe('A Parquet file.');
export type BulkFile = z.infer<typeof bulkFile>;

export const bulkFiles = z
  .strictObject({ ranges: z.array(bulkFile).describe('Files by ascending height. A hundred heights without activity have no file.') })
  .describe('The Parquet files of all records.');
