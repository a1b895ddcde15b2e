/** Schema of `activity/index.json`, the list of Parquet files. Has no times, so that equal records give equal bytes. */
import { z } from 'zod';
import { hex64 } from './schemas.ts';

const integer = z.int().min(0);

const bulkFile = z
  .strictObject({
    file: z
      .string()
      .regex(/^[0-9]+\.parquet$/)
      .describe('Name of the file, in the same folder. The number is the first of the 100 heights that the file covers.'),
    first: integer.describe('Height of the lowest block in the file.'),
    last: integer.describe('Height of the highest block in the file.'),
    blocks: z.int().min(1).describe('Blocks in the file.'),
    records: z.int().min(1).describe('Records in the file.'),
    bytes: integer.describe('Size of the file, in bytes.'),
    sha256: hex64.describe('SHA-256 of the file: 64 hex digits.'),
  })
  .describe('A Parquet file.');
export type BulkFile = z.infer<typeof bulkFile>;

export const bulkFiles = z
  .strictObject({ ranges: z.array(bulkFile).describe('Heights ascending. Ranges of 100 heights without activity have no file.') })
  .describe('The Parquet files of all records.');
