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
      .describe('Name of the file, beside this list: the first of the hundred heights that it is for.'),
    first: integer.describe('The lowest block in it.'),
    last: integer.describe('The highest block in it.'),
    blocks: z.int().min(1).describe('Blocks in it.'),
    records: z.int().min(1).describe('Records in it.'),
    bytes: integer.describe('Its size, in bytes.'),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .describe('SHA-256 of its content: 64 hex digits.'),
  })
  .describe('A Parquet file.');
export type BulkFile = z.infer<typeof bulkFile>;

export const bulkFiles = z
  .strictObject({ ranges: z.array(bulkFile).describe('Heights ascending; a hundred heights without activity have no file.') })
  .describe('The Parquet files of all records.');
