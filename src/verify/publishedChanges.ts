/**
 * Reads what only the files of changes (lists/changes.ts) know: their limits, blocks without records, and spent outputs. Compares these
 * outputs with the records of the blocks.
 */
import { join } from 'node:path';
import type { z } from 'zod';
import { changesSchemas, misfitOf } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { blockRanges, isWithin } from '../duckdb/blockRanges.ts';
import { int } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { CHANGES_INDEX_PATH, changesPath } from '../pages/filePaths.ts';
import type { Claims } from './spentOutputs.ts';
import type { HEIGHTS, Verification } from './verification.ts';

export const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR');

/** An entry that sorts after all outpoints. It stands for the entries that a file lacks because its list was cut. */
const BEYOND = '~';

type PublishedChanges = Awaited<ReturnType<typeof readChanges>>;

/** Adds a finding for each file that cannot be read. */
export async function readChanges({ root, site, findings, store }: Verification) {
  const schemas = changesSchemas(site.dialect);
  const read = <Content>(path: string, schema: z.ZodType<Content>): Content | undefined => {
    try {
      return schema.parse(JSON.parse(readRegularFile(join(root, path)).toString('utf8')));
    } catch (error) {
      findings.add(`${path} cannot be read: ${misfitOf(error)}`);
      return undefined;
    }
  };
  const { blocks: listed, ...bounds } = read(CHANGES_INDEX_PATH, schemas.ChangesIndex) ?? { blocks: [], most_blocks: 1, most_entries: 1 };
  const files = listed.flatMap(({ height }) => read(changesPath(height), schemas.Changes) ?? []);
  const all = [...(files[0]?.previous === undefined ? [] : [files[0].previous]), ...listed];
  const isCut = ({ spent = [], more }: (typeof files)[number]) => more === true && spent.length === bounds.most_entries;
  const rows = files.flatMap((file) =>
    [...(file.spent ?? []), ...(isCut(file) ? [BEYOND] : [])].map((output) => [file.height, output, ''] as const),
  );
  return {
    bounds,
    /** The listed blocks, and the block below the lowest of them. */
    blocks: all.map(({ height, hash }) => ({ height, hash: hash.slice(-64) })),
    /** The outputs that the listed blocks spend. `address` is empty. */
    spent: await store.append('changes_spent', SPENT, rows),
    hasSpent: files.some(({ spent }) => spent !== undefined),
    /** Height of the lowest block with a file. */
    lowest: listed[0]?.height,
    /** True if a list of spent outputs was cut. */
    isCut: files.some(isCut),
  };
}

/** SQL condition for the outputs that a file names. */
const IS_NAMED = `"output" <> '${BEYOND}'`;

/** Returns what the files say about spent outputs; nothing without files. */
export function claimsOf({ lowest, spent, isCut }: PublishedChanges): Claims[] {
  if (lowest === undefined) return [];
  const wrong = 'the files of changes are wrong about whether the output';
  return [{ rows: `FROM ${spent} WHERE ${IS_NAMED}`, hasAddresses: false, isDue: isCut ? 'false' : `made >= ${lowest}`, wrong }];
}

/**
 * Adds a finding for each file with other spent outputs than its block: the block sends and burns other units than are in them. `received`
 * is SQL of the runes that outputs received, and `heights` has the blocks of `records`.
 */
export async function compareUnits(
  { lowest, spent }: PublishedChanges,
  records: Records,
  received: string,
  heights: Table<typeof HEIGHTS>,
  { findings, limits, store }: Verification,
): Promise<void> {
  if (lowest === undefined) return;
  const units = (amount: string) => `replace(coalesce(${amount}, '0'), '.', '')::BIGNUM AS units`;
  const sums = (rows: string) => `SELECT height, rune_id, address, sum(units) AS units FROM (${rows}) GROUP BY ALL`;
  const isComplete = `block_height NOT IN (SELECT block_height FROM ${spent} WHERE NOT ${IS_NAMED})`;
  for (const range of await blockRanges(heights, limits, store, { first: lowest, last: Number.MAX_SAFE_INTEGER })) {
    const of = (table: Table) => `FROM ${table} WHERE ${isWithin(range)} AND ${isComplete}`;
    const moved = `SELECT block_height AS height, rune_id, coalesce(address, '') AS address, operation, ${units('amount')}
      FROM (${of(records)}) WHERE operation IN ('send', 'burn')`;
    const held = `SELECT s.block_height AS height, r.rune_id, coalesce(r.address, '') AS address, ${units('r.amount')}
      FROM (${received}) AS r JOIN (${of(spent)}) AS s USING ("output")`;
    // Both are the same for each rune and address, but units without an address that are burned may also be minted or premined.
    const wrong = await store.rows(
      `WITH moved AS (${moved})
       SELECT DISTINCT height FROM (${sums('FROM moved')}) AS m FULL JOIN (${sums(held)}) AS s USING (height, rune_id, address)
       WHERE coalesce(m.units, 0::BIGNUM) <> coalesce(s.units, 0::BIGNUM)
         AND NOT (address = '' AND (height, rune_id) IN (SELECT (height, rune_id) FROM moved WHERE address = '' AND operation = 'burn'))`,
      { height: int },
    );
    for (const { height } of wrong)
      findings.add(`${changesPath(height)}: the file of changes of block ${height} has other spent outputs than its records`);
  }
}
