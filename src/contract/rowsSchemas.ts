/**
 * Schemas of the index of a folder of rows: `index.json` in the folder `pulled`, and the published `rows/index-….json`. It names the files
 * that count. It has no times: equal rows give equal bytes.
 */
import { z } from 'zod';
import { rowFilePath } from '../pages/filePaths.ts';
import { count, objectOf } from './schemaParts.ts';
import { hex64 } from './schemas.ts';
import { blocksFile } from './sources.ts';

const file = {
  first: count.describe('First height that the file covers.'),
  last: count.describe('Last height that the file covers.'),
  rows: count.describe('Number of rows.'),
  bytes: z.int().min(1).describe('Size of the file, in bytes.'),
  sha256: hex64.describe('SHA-256 of the file: 64 hex digits. The first 16 are in its name.'),
  digest: hex64.describe('SHA-256 of the rows in the order of the file, each as a JSON array of its cells and a line feed.'),
};

export const rowsIndex = blocksFile
  .extend({
    version: z.literal(1).describe('Version of this form.'),
    spent: z.boolean().describe('True if the rows have the column `spent`, because all of them are from a node.'),
    files: z
      .array(objectOf('The file `rows/<first>-<last>-<first 16 digits of sha256>.parquet`.', file))
      .describe('Files of rows, heights ascending: of a hundred settled heights, or of fewer. Heights without rows have no file.'),
    runes: z
      .array(objectOf('The file `rows/<first>-<last>-<first 16 digits of sha256>.runes.parquet`.', file))
      .describe('Files with the runes that these blocks etched. They may begin below the rows, which refer to older runes, too.'),
  })
  .describe('The ledger rows of all blocks, as Parquet files.');
export type RowsIndex = z.infer<typeof rowsIndex>;
export type RowFile = RowsIndex['files'][number];

/** The index in the folder `pulled`, with the ranges of blocks that were fetched from mirrors. A node read all others. */
export const folderIndex = rowsIndex.extend({
  mirrors: z.array(z.strictObject({ url: z.string(), blocks: z.array(z.tuple([count, count])) })).optional(),
});
export type FolderIndex = z.infer<typeof folderIndex>;

/** Lists of files in an index. */
export const KINDS = ['files', 'runes'] as const;
export type Kind = (typeof KINDS)[number];

/** Returns the name of a file in a folder of rows. */
export const rowsName = (kind: Kind, { first, last, sha256 }: Pick<RowFile, 'first' | 'last' | 'sha256'>): string =>
  rowFilePath(first, last, sha256, kind === 'runes').slice('rows/'.length);

export const namesOf = (index: Readonly<Record<Kind, readonly RowFile[]>>): string[] =>
  KINDS.flatMap((kind) => index[kind].map((file) => rowsName(kind, file)));

/** True for names of files in a folder of rows. Files with such names that the index does not name are garbage. */
export const isRowsName = (name: string): boolean => /^[0-9]{1,8}-[0-9]{1,8}-[0-9a-f]{16}(?:\.runes)?\.parquet$/.test(name);

export const isIndexName = (name: string): boolean => /^index(?:-[0-9a-f]{16})?\.json$/.test(name);

/** Formats an index. The order of its keys does not depend on the order in `index`. */
export function indexText({ version, sources, tip, network, ends, mirrors, spent, files, runes }: FolderIndex): string {
  const head = { version, sources, tip, network, ends, mirrors, spent };
  const list = (entries: readonly RowFile[]) => `[\n${entries.map((file) => JSON.stringify(file)).join(',\n')}\n]`;
  return `${JSON.stringify(head).slice(0, -1)},"runes":${list(runes)},"files":${list(files)}}\n`;
}
