/**
 * Sorts, groups or joins any number of rows with bounded memory: divides them by ranges of keys into files, and takes one
 * file after the other. Each row is written twice, whatever the number of rows: once as it comes, and once to its file.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBDataChunk } from '@duckdb/node-api';
import { countCrossing, exceeds, type WorkLimits } from '../limits.ts';
import { readRows } from './readFilesSql.ts';
import { literal, MOST_PARTS, type Store, text } from './store.ts';

export interface KeyedRows {
  readonly rows: string;
  /** SQL expression of an upper bound of the number of rows. Without it, the query runs once more to count them. */
  readonly most?: string;
  /** Column of texts or numbers. Rows with the same value are in the same part. */
  readonly key: string;
  /** Bytes of memory that DuckDB needs to sort a row: several times the length of its texts. */
  readonly rowBytes?: number;
}

/** Rows that are sorted by their key first. */
export interface UnsortedRows extends KeyedRows {
  /** ORDER BY expressions for rows with the same key. */
  readonly within: string;
  /** SELECT expressions of the result. Default: all columns. */
  readonly select?: string;
}

/** Default of `rowBytes`, for rows with up to 200 characters of text. A sort needs several times their length. */
const ROW_BYTES = 1024;

/** Number of sampled keys per part. The keys that divide the rows into parts are chosen from the samples. */
const SAMPLES_PER_PART = 100;

/** Yields the sorted rows in chunks. No other query may run before the last chunk is read. */
export async function* sortedRows(
  { within, select = '*', ...rows }: UnsortedRows,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): AsyncGenerator<DuckDBDataChunk> {
  for await (const part of rowParts(rows, limits, store))
    yield* store.stream(`SELECT ${select} FROM (FROM (${part}) ORDER BY ${rows.key}, ${within})`);
}

/**
 * Divides rows by ranges of their keys. Yields SQL that selects the rows of a part, by ascending keys. A part has so few
 * rows that they can be sorted, grouped or joined at once, unless more rows have the same key.
 */
export async function* rowParts(
  { rows, most = `(SELECT count(*) FROM (${rows}))`, key, rowBytes = ROW_BYTES }: KeyedRows,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): AsyncGenerator<string> {
  const count = await store.number(`SELECT (${most})::BIGINT AS number`);
  // In a build with little input, DuckDB keeps freed memory (FREED in store.ts), which its memory limit does not count.
  // Such a build may still sort many rows, when it merges long lists. So DuckDB must return freed memory from now on.
  if (exceeds(limits, 'keptRecords', count)) await store.returnFreed();
  const atOnce = Math.min(limits.sortedAtOnce, Math.ceil(store.memory / rowBytes));
  if (count <= atOnce) return yield rows;
  countCrossing('sortedAtOnce');
  const folder = join(store.scratch, store.nameOf('sorted'));
  try {
    const all = join(folder, 'all');
    await store.writeRows(rows, all);
    yield* partsIn(all, count, { key, atOnce, rowBytes }, store);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface PartForm {
  readonly key: string;
  /** Number of rows of a part. */
  readonly atOnce: number;
  readonly rowBytes: number;
}

/** Divides the rows of a folder of files, and removes the folder. `most` is an upper bound of the number of rows. */
async function* partsIn(from: string, most: number, form: PartForm, store: Store): AsyncGenerator<string> {
  const { key, atOnce, rowBytes } = form;
  const ends = most <= atOnce ? [] : await endsOf(from, Math.min(Math.ceil(most / atOnce), MOST_PARTS), key, store);
  if (ends.length === 0) {
    yield `FROM ${readRows(from)}`;
  } else {
    const into = `${from}-parts`;
    await store.writeRows(`SELECT *, ${partOf(key, ends)} AS part FROM ${readRows(from)}`, into, { by: 'part', rowBytes });
    rmSync(from, { recursive: true });
    for (let part = 0; part <= ends.length; part += 1) {
      const file = join(into, `part=${part}`);
      if (!existsSync(file)) continue;
      // The samples divide the rows well, unless there are more parts than files. `partsIn` then divides a file again.
      const held = most > MOST_PARTS * atOnce ? await store.number(`SELECT count(*) AS number FROM ${readRows(file)}`) : atOnce;
      yield* partsIn(file, held, form, store);
    }
  }
  rmSync(from, { recursive: true, force: true });
}

/** Returns SQL for the number of the part of a key: the number of `ends` that are not above it. */
function partOf(key: string, ends: readonly string[], first = 0): string {
  if (ends.length === 0) return `${first}`;
  const middle = ends.length >> 1;
  const [below, above] = [partOf(key, ends.slice(0, middle), first), partOf(key, ends.slice(middle + 1), first + middle + 1)];
  return `CASE WHEN ${key} < ${literal(ends[middle] ?? '')} THEN ${below} ELSE ${above} END`;
}

/**
 * Returns keys that divide the rows of a folder into parts of about equal size. The sizes need not be equal, because any
 * keys give the same sorted rows.
 */
async function endsOf(folder: string, parts: number, key: string, store: Store): Promise<string[]> {
  const samples = await store.rows(
    `SELECT s.key::VARCHAR AS key FROM (SELECT ${key} AS key FROM ${readRows(folder)} USING SAMPLE reservoir(${parts * SAMPLES_PER_PART} ROWS) REPEATABLE (1)) AS s ORDER BY s.key`,
    { key: text },
  );
  const ends = Array.from({ length: parts - 1 }, (_, i) => samples[Math.floor(((i + 1) * samples.length) / parts)]?.key);
  return [...new Set(ends.filter((end) => end !== undefined))].filter((end) => end !== samples[0]?.key);
}
