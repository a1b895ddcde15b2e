/**
 * The Parquet files of a build. A build that goes on from the last one has read only blocks that changed, so it takes the rows of the others from the
 * file as it is. That is done only with a file that is as the state says, to the byte.
 */
import { join, resolve } from 'node:path';
import { HEIGHTS_PER_RANGE, RANGES_PATH, rangePath } from '../pages/paths.ts';
import { int, literal, nullable, type Store, text } from '../store/duckdb.ts';
import type { DiskSink } from '../write/sinks.ts';
import { type FileStamp, rangesFile, stampOf } from './ranges.ts';
import { rowsOfFiles, rowsOfRecords, writeRows } from './rows.ts';

/** A Parquet file is not as the last build left it, so a build cannot go on from it. */
export class ChangedRangeError extends Error {
  override readonly name = 'ChangedRangeError';
}

/** SQL of the first height of a block's range. */
const FIRST = `block_height - block_height % ${HEIGHTS_PER_RANGE}`;

/**
 * Compares the files of the ranges that hold a block of the table `affected` with the state. Throws a ChangedRangeError for one that is not as it was.
 */
export async function checkRanges(out: string, store: Store): Promise<void> {
  const rows = await store.rows(
    `SELECT DISTINCT ${FIRST} AS first, r.bytes, r.digest FROM known_blocks LEFT JOIN known_ranges r ON r.first = ${FIRST}
    WHERE ${FIRST} IN (SELECT ${FIRST} FROM affected) ORDER BY first`,
    { first: int, bytes: nullable(int), digest: nullable(text) },
  );
  for (const { first, bytes, digest } of rows) {
    const path = rangePath(first);
    const now = await stampOf(join(out, path));
    if (now === undefined || now.bytes !== bytes || now.sha256 !== digest) {
      throw new ChangedRangeError(`${join(out, path)} is not as the last build left it`);
    }
  }
}

/** A range whose file has to be made. */
interface Due {
  readonly first: number;
  readonly records: number;
  /** Records of it that this build has read. */
  readonly fresh: number;
}

/** Records that are put aside at once, when ranges hold few: else each would be a scan of all that was read. */
const RECORDS_ASIDE = 200_000;

/** What was read, without blocks that are as they were. */
const WRITTEN = 'block_height IN (SELECT block_height FROM written)';

/**
 * Makes the files of the ranges in which a block changed (the table `replaced`), and the list of all. Runs after state/update.ts brought the state's
 * blocks up to this build. Returns the paths of files that have no block any more. Files are made in `scratch`.
 */
export async function writeRanges(out: string, scratch: string, sink: DiskSink, store: Store): Promise<string[]> {
  const touched = `(SELECT ${FIRST} FROM replaced)`;
  const due: Due[] = await store.rows(
    `SELECT ${FIRST} AS first, sum(records)::BIGINT AS records, coalesce(sum(records) FILTER (${WRITTEN}), 0)::BIGINT AS fresh
      FROM state.blocks WHERE ${FIRST} IN ${touched} GROUP BY ${FIRST} ORDER BY first`,
    { first: int, records: int, fresh: int },
  );
  const before = await store.rows(`SELECT first FROM state.ranges WHERE first IN ${touched}`, { first: int });
  await store.run(`DELETE FROM state.ranges WHERE first IN ${touched}`);
  for (const portion of portionsOf(due)) {
    const relation = portion.length === 1 ? 'kept' : await putAside(portion, store);
    for (const range of portion) {
      const made = join(scratch, 'range.parquet');
      const path = rangePath(range.first);
      const held = `block_height BETWEEN ${range.first} AND ${range.first + HEIGHTS_PER_RANGE - 1}`;
      const fresh = await rowsOfRecords(relation, `${held} AND ${WRITTEN}`, store);
      const old = resolve(out, path);
      const rows =
        range.fresh === range.records
          ? fresh
          : `${fresh} UNION ALL ${rowsOfFiles([old], 'block_height NOT IN (SELECT block_height FROM replaced)')}`;
      await writeRows(rows, range.records, made, store);
      await remember(range.first, await stampOf(made), store);
      sink.take(path, made);
    }
  }
  sink.file(RANGES_PATH, await listOf(store));
  const made = new Set(due.map(({ first }) => first));
  return before.flatMap(({ first }) => (made.has(first) ? [] : rangePath(first)));
}

/** Neighbours that hold few records together, and every other range by itself. */
function portionsOf(ranges: readonly Due[]): Due[][] {
  const portions: Due[][] = [];
  let room = 0;
  for (const range of ranges) {
    const last = portions.at(-1);
    room -= range.fresh;
    if (last !== undefined && room >= 0) last.push(range);
    else {
      portions.push([range]);
      room = RECORDS_ASIDE - range.fresh;
    }
  }
  return portions;
}

/** Makes a table of what was read of these ranges. Returns its name. */
async function putAside(portion: readonly Due[], store: Store): Promise<string> {
  const [first, last] = [portion[0]?.first ?? 0, portion.at(-1)?.first ?? 0];
  const held = `block_height BETWEEN ${first} AND ${last + HEIGHTS_PER_RANGE - 1}`;
  await store.run(`CREATE OR REPLACE TEMP TABLE aside AS SELECT * FROM kept WHERE ${held} AND ${WRITTEN} ORDER BY block_height`);
  return 'aside';
}

async function remember(first: number, stamp: FileStamp | undefined, store: Store): Promise<void> {
  if (stamp === undefined) throw new Error(`${rangePath(first)} was not made`);
  await store.run(`INSERT INTO state.ranges VALUES (${first}, ${stamp.bytes}, ${literal(stamp.sha256)})`);
}

/** The list of all ranges of the state. */
async function listOf(store: Store): Promise<Buffer> {
  const blocks = await store.rows('SELECT block_height AS height, records FROM state.blocks ORDER BY height', {
    height: int,
    records: int,
  });
  const ranges = await store.rows('SELECT * FROM state.ranges', { first: int, bytes: int, digest: text });
  return rangesFile(blocks, new Map(ranges.map(({ first, bytes, digest }) => [first, { bytes, sha256: digest }])));
}
