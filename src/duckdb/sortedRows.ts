/** Sorts rows of texts in parts, because sorting them all at once needs memory that DuckDB cannot spill to disk. */
import type { DuckDBDataChunk } from '@duckdb/node-api';
import { countCrossing, exceeds, type WorkLimits } from '../limits.ts';
import { literal, type Store, text } from './store.ts';

export interface UnsortedRows {
  readonly rows: string;
  /** SQL expression of an upper bound of the number of rows. Without it, the query runs once more to count them. */
  readonly most?: string;
  /** Column of texts or numbers by which rows are sorted first. Rows with the same value are in the same part. */
  readonly key: string;
  /** ORDER BY expressions for rows with the same key. */
  readonly within: string;
  /** Bytes of memory that DuckDB needs to sort a row: several times the length of its texts. */
  readonly rowBytes?: number;
  /** SELECT expressions of the result. Default: all columns. */
  readonly select?: string;
}

/** Default of `rowBytes`, for rows with up to 200 characters of text. A sort needs several times their length. */
const ROW_BYTES = 1024;

/** Number of sampled keys per part. The keys that divide the rows into parts are chosen from the samples. */
const SAMPLES_PER_PART = 100;

/**
 * If there are at least so many parts, they are divided into groups, and the rows of a group are copied to a table of
 * their own. To select a part, DuckDB reads all rows of a table, and most of them are on the disk. With groups, n parts
 * cost about 2√n readings of all rows instead of n.
 */
const PARTS_FOR_GROUPS = 9;

/** Yields the sorted rows in chunks. No other query may run before the last chunk is read. */
export async function* sortedRows(
  { rows, most = `(SELECT count(*) FROM (${rows}))`, key, within, rowBytes = ROW_BYTES, select = '*' }: UnsortedRows,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): AsyncGenerator<DuckDBDataChunk> {
  const order = `ORDER BY ${key}, ${within}`;
  const count = await store.number(`SELECT (${most})::BIGINT AS number`);
  // In a build with little input, DuckDB keeps freed memory (FREED in store.ts), which its memory limit does not count.
  // Such a build may still sort many rows, when it merges long lists. So DuckDB must return freed memory from now on.
  if (exceeds(limits, 'keptRecords', count)) await store.returnFreed();
  const parts = Math.ceil(count / Math.min(limits.sortedAtOnce, Math.ceil(store.memory / rowBytes)));
  if (parts <= 1) {
    yield* store.stream(`SELECT ${select} FROM (FROM (${rows}) ${order})`);
    return;
  }
  await store.run(`CREATE OR REPLACE TEMP TABLE unsorted AS ${rows}`);
  const ends = await endsOf(parts, key, store);
  const inGroup = parts < PARTS_FOR_GROUPS ? parts : Math.ceil(Math.sqrt(parts));
  for (let begin = 0; begin <= ends.length; begin += inGroup) {
    const group = [...ends, undefined].slice(begin, begin + inGroup);
    const isAll = group.length > ends.length;
    if (!isAll)
      await store.run(
        `CREATE OR REPLACE TEMP TABLE unsorted_group AS FROM unsorted WHERE ${isBetween(key, ends[begin - 1], group.at(-1))}`,
      );
    for (const [i, end] of group.entries()) {
      const isIn = isBetween(key, ends[begin + i - 1], end);
      yield* store.stream(`SELECT ${select} FROM (FROM ${isAll ? 'unsorted' : 'unsorted_group'} WHERE ${isIn} ${order})`);
    }
    if (!isAll) await store.run('DROP TABLE unsorted_group');
  }
  await store.run('DROP TABLE unsorted');
}

/** Returns SQL that is true for keys from `start` (inclusive) to `end` (exclusive). Undefined is no limit. */
const isBetween = (key: string, start: string | undefined, end: string | undefined): string =>
  `${start === undefined ? 'true' : `${key} >= ${literal(start)}`} AND ${end === undefined ? 'true' : `${key} < ${literal(end)}`}`;

/**
 * Returns keys that divide the rows into parts of about equal size. The sizes need not be equal, because any keys give
 * the same sorted rows.
 */
async function endsOf(parts: number, key: string, store: Store): Promise<string[]> {
  countCrossing('sortedAtOnce');
  const samples = await store.rows(
    `SELECT s.key::VARCHAR AS key FROM (SELECT ${key} AS key FROM unsorted USING SAMPLE reservoir(${parts * SAMPLES_PER_PART} ROWS) REPEATABLE (1)) AS s ORDER BY s.key`,
    { key: text },
  );
  const ends = Array.from({ length: parts - 1 }, (_, i) => samples[Math.floor(((i + 1) * samples.length) / parts)]?.key);
  return [...new Set(ends.filter((end) => end !== undefined))];
}
