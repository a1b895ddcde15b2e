/**
 * Writes the Parquet files of a build. An incremental build reads only changed blocks, so it copies the rows of other
 * blocks from the existing file. Before that, it checks that the bytes of the existing file match the state.
 */
import { join, resolve } from 'node:path';
import { int, literal, nullable, type Store, text } from '../duckdb/store.ts';
import type { DiskSink } from '../engine/render/fileSinks.ts';
import type { State, StateTables } from '../engine/state/state.ts';
import type { BlockChanges } from '../engine/state/updateState.ts';
import type { Loaded } from '../input/loadInput.ts';
import { countCrossing, type WorkLimits } from '../limits.ts';
import { HEIGHTS_PER_RANGE, RANGES_PATH, rangePath } from '../pages/filePaths.ts';
import { rangesFile, stampOf } from './parquetIndex.ts';
import { rowsOfFiles, rowsOfRecords, writeRows } from './parquetRows.ts';

/** Thrown if a Parquet file was changed since the last build, because a build cannot copy rows from it. */
export class ChangedRangeError extends Error {
  override readonly name = 'ChangedRangeError';
}

/** SQL of the first height of a block's range. */
const FIRST = `block_height - block_height % ${HEIGHTS_PER_RANGE}`;

/** Throws a ChangedRangeError if the file of a range with an affected block does not match its stamp in the state. */
export async function checkRanges(out: string, affected: Loaded['affected'], { known }: State, store: Store): Promise<void> {
  const rows = await store.rows(
    `SELECT DISTINCT ${FIRST} AS first, r.bytes, r.digest FROM ${known.blocks} LEFT JOIN ${known.ranges} r ON r.first = ${FIRST}
    WHERE ${FIRST} IN (SELECT ${FIRST} FROM ${affected}) ORDER BY first`,
    { first: int, bytes: nullable(int), digest: nullable(text) },
  );
  for (const { first, bytes, digest } of rows) {
    const path = rangePath(first);
    const now = await stampOf(join(out, path));
    if (now === undefined || now.bytes !== bytes || now.sha256 !== digest) {
      throw new ChangedRangeError(`${join(out, path)} was changed since the last build`);
    }
  }
}

/** Range whose file must be written. */
interface Due {
  readonly first: number;
  readonly records: number;
  /** Records of new and changed blocks of the range, which this build has read. */
  readonly fresh: number;
}

/**
 * Writes the files of ranges with a changed block, and the list of all files. `state` already has the new blocks.
 * Temporary files go to `scratch`. Returns the paths of files whose range no longer has blocks.
 */
export async function writeRanges(
  out: string,
  kept: Loaded['kept'],
  { written, replaced }: BlockChanges,
  state: StateTables,
  scratch: string,
  sink: DiskSink,
  limits: AsideLimits,
  store: Store,
): Promise<string[]> {
  const touched = `(SELECT ${FIRST} FROM ${replaced})`;
  // Excludes blocks that were read but have not changed.
  const isWritten = `block_height IN (SELECT block_height FROM ${written})`;
  const due: Due[] = await store.rows(
    `SELECT ${FIRST} AS first, sum(records)::BIGINT AS records, coalesce(sum(records) FILTER (${isWritten}), 0)::BIGINT AS fresh
      FROM ${state.blocks} WHERE ${FIRST} IN ${touched} GROUP BY ${FIRST} ORDER BY first`,
    { first: int, records: int, fresh: int },
  );
  const before = await store.rows(`SELECT first FROM ${state.ranges} WHERE first IN ${touched}`, { first: int });
  await store.run(`DELETE FROM ${state.ranges} WHERE first IN ${touched}`);
  for (const portion of portionsOf(due, limits)) {
    const aside = portion.length === 1 ? undefined : await putAside(portion, kept, isWritten, store);
    for (const range of portion) {
      const made = join(scratch, 'range.parquet');
      const path = rangePath(range.first);
      const isInRange = `block_height BETWEEN ${range.first} AND ${range.first + HEIGHTS_PER_RANGE - 1}`;
      const fresh = await rowsOfRecords(aside ?? kept, `${isInRange} AND ${isWritten}`, store);
      const old = resolve(out, path);
      const rows =
        range.fresh === range.records
          ? fresh
          : `${fresh} UNION ALL ${rowsOfFiles([old], `block_height NOT IN (SELECT block_height FROM ${replaced})`)}`;
      await writeRows(rows, range.records, made, store);
      const stamp = await stampOf(made);
      if (stamp === undefined) throw new Error(`${path} was not written`);
      await store.run(`INSERT INTO ${state.ranges} VALUES (${range.first}, ${stamp.bytes}, ${literal(stamp.sha256)})`);
      sink.take(path, made);
    }
    if (aside !== undefined) await store.run(`DROP TABLE ${aside}`);
  }
  sink.file(RANGES_PATH, await listOf(state, store));
  const made = new Set(due.map(({ first }) => first));
  return before.flatMap(({ first }) => (made.has(first) ? [] : rangePath(first)));
}

type AsideLimits = Pick<WorkLimits, 'recordsAside'>;

/** Groups neighbouring ranges with at most `recordsAside` records to write. A larger range is its own group. */
function portionsOf(ranges: readonly Due[], { recordsAside }: AsideLimits): Due[][] {
  const portions: Due[][] = [];
  let room = 0;
  for (const range of ranges) {
    const last = portions.at(-1);
    room -= range.fresh;
    if (last !== undefined && room >= 0) last.push(range);
    else {
      if (last !== undefined) countCrossing('recordsAside');
      portions.push([range]);
      room = recordsAside - range.fresh;
    }
  }
  return portions;
}

/** Copies the new and changed blocks' records of these ranges to a temporary table. */
function putAside(portion: readonly Due[], kept: Loaded['kept'], isWritten: string, store: Store): Promise<Loaded['kept']> {
  const [first, last] = [portion[0]?.first ?? 0, portion.at(-1)?.first ?? 0];
  const isInRange = `block_height BETWEEN ${first} AND ${last + HEIGHTS_PER_RANGE - 1}`;
  return store.table('aside', kept.columns, `SELECT * FROM ${kept} WHERE ${isInRange} AND ${isWritten} ORDER BY block_height`);
}

async function listOf(state: StateTables, store: Store): Promise<Buffer> {
  const sql = `SELECT block_height AS height, records FROM ${state.blocks} ORDER BY height`;
  const blocks = await store.rows(sql, { height: int, records: int });
  const ranges = await store.rows(`SELECT * FROM ${state.ranges}`, { first: int, bytes: int, digest: text });
  return rangesFile(blocks, new Map(ranges.map(({ first, bytes, digest }) => [first, { bytes, sha256: digest }])));
}
