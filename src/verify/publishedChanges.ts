/** Reads what only the files of changes (lists/changes.ts) know: their limits, blocks without records, and spent outputs. */
import { join } from 'node:path';
import type { z } from 'zod';
import { changesSchemas } from '../contract/changesSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import type { LastRead } from '../contract/sources.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { columns, type Table } from '../duckdb/table.ts';
import type { ChangesBounds } from '../lists/changes.ts';
import { digestOf } from '../lists/changesOfBlocks.sql.ts';
import { CHANGES_INDEX_PATH, changesPath } from '../pages/filePaths.ts';
import type { Verification } from './verification.ts';

export const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR');

/** An entry that sorts after all outpoints. It stands for the entries that a file lacks because its list was cut. */
const BEYOND = '~';

export interface PublishedChanges {
  readonly bounds: ChangesBounds;
  /** The listed blocks, and the block below the lowest of them. */
  readonly blocks: readonly LastRead[];
  /** The outputs that the listed blocks spend. `address` is empty. */
  readonly spent: Table<typeof SPENT>;
  readonly hasSpent: boolean;
  /** Heights of the blocks with a file, ascending. */
  readonly heights: readonly number[];
  /** True if a list of spent outputs was cut. */
  readonly isCut: boolean;
}

/** Adds a finding for each file that cannot be read. */
export async function readChanges({ root, site, findings, store }: Verification): Promise<PublishedChanges> {
  const schemas = changesSchemas(site.dialect);
  const read = <Content>(path: string, schema: z.ZodType<Content>, sha256?: string): Content | undefined => {
    try {
      const text = readRegularFile(join(root, path)).toString('utf8');
      if (sha256 !== undefined && digestOf(text) !== sha256) findings.add(`${path} does not have the SHA-256 in ${CHANGES_INDEX_PATH}`);
      return schema.parse(JSON.parse(text));
    } catch (error) {
      findings.add(`${path} cannot be read: ${misfitOf(error)}`);
      return undefined;
    }
  };
  const { blocks: listed, ...bounds } = read(CHANGES_INDEX_PATH, schemas.ChangesIndex) ?? { blocks: [], most_blocks: 1, most_entries: 1 };
  const files = listed.flatMap(({ height, sha256 }) => read(changesPath(height), schemas.Changes, sha256) ?? []);
  const all = [...(files[0]?.previous === undefined ? [] : [files[0].previous]), ...listed];
  const isCut = ({ spent = [], more }: (typeof files)[number]) => more === true && spent.length === bounds.most_entries;
  const rows = files.flatMap((file) =>
    [...(file.spent ?? []), ...(isCut(file) ? [BEYOND] : [])].map((output) => [file.height, output, ''] as const),
  );
  return {
    bounds,
    blocks: all.map(({ height, hash }) => ({ height, hash: hash.slice(-64) })),
    spent: await store.append('changes_spent', SPENT, rows),
    hasSpent: files.some(({ spent }) => spent !== undefined),
    heights: listed.map(({ height }) => height),
    isCut: files.some(isCut),
  };
}

/** SQL condition for the outputs that a file names. */
export const IS_NAMED = `"output" <> '${BEYOND}'`;
