/** Sorts, groups or joins any number of rows in bounded memory: writes them to files by ranges of keys, and takes file after file. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBDataChunk } from '@duckdb/node-api';
import { countCrossing, exceeds, type WorkLimits } from '../limits.ts';
import { readRows } from './readFilesSql.ts';
import { literal, MOST_PARTS, type Store, text } from './store.ts';

export interface KeyedRows {
  /** SQL that selects the rows. With many rows, it runs twice: first to choose the ranges of keys. Several queries run one by one. */
  readonly rows: string | readonly string[];
  /** An upper bound of the number of rows, or its SQL expression. Without it, the query runs once more to count them. */
  readonly most?: number | string;
  /** A number that is at least the number of rows, but may be far above it. If it is small, the rows are not counted. */
  readonly bound?: number | undefined;
  /** Column of texts or numbers. Rows with the same value are in the same part. */
  readonly key: string;
  /** SQL that selects the column `key` of all rows, and of any others, in less time than `rows`. The ranges of keys are chosen from it. */
  readonly keys?: string | undefined;
  /** Bytes of memory that DuckDB needs to sort a row: several times the length of its texts. */
  readonly rowBytes?: number;
  /** For keys that are hashes: the number above the highest one. The keys are evenly distributed below it. */
  readonly hashEnd?: number;
}

/** Rows that are sorted by their key first. */
export interface UnsortedRows extends KeyedRows {
  /** ORDER BY expressions for rows with the same key. */
  readonly within: string;
  /** SELECT expressions of the result. Default: all columns. */
  readonly select?: string;
}

/** Default of `rowBytes`, for rows with up to 200 characters of text. */
const ROW_BYTES = 1024;

/** Number of sampled keys per part. */
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
 * Divides rows by ranges of their keys. Yields SQL of the rows of a part, by ascending keys. A part has so few rows that they can be
 * sorted, grouped or joined at once, unless more rows have the same key.
 */
export async function* rowParts(
  form: KeyedRows,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): AsyncGenerator<string> {
  const { rows, most, bound = Number.POSITIVE_INFINITY, rowBytes = ROW_BYTES } = form;
  const all = unionOf(rows);
  // Half of the memory: a part may have half more rows than it should (MOST_EXCESS), and temporary tables need some, too.
  const atOnce = Math.min(limits.sortedAtOnce, Math.ceil(store.memory / 2 / rowBytes));
  if (bound <= atOnce && bound <= limits.keptRecords) return yield all;
  const sql = most ?? `(SELECT count(*) FROM (${all}))`;
  const count = typeof sql === 'number' ? sql : await store.number(`SELECT (${sql})::BIGINT AS number`);
  // A build with little input keeps freed memory (FREED in store.ts). It may still sort many rows, when it merges long lists.
  if (exceeds(limits, 'keptRecords', count)) await store.returnFreed();
  if (count <= MOST_EXCESS * atOnce) return yield all;
  countCrossing('sortedAtOnce');
  const folder = join(store.scratch, store.nameOf('sorted'));
  try {
    yield* dividedRows(form, count, atOnce, folder, store);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes `count` rows to a folder per range of keys. A part has about `atOnce` rows: a range that has far more is divided again. */
async function* dividedRows(form: KeyedRows, count: number, atOnce: number, folder: string, store: Store): AsyncGenerator<string> {
  const { key, keys = unionOf(form.rows), rowBytes = ROW_BYTES, hashEnd } = form;
  const parts = Math.min(Math.ceil(count / atOnce), MOST_PARTS);
  const ends = hashEnd === undefined ? await sampledEnds(keys, parts, key, store) : evenEnds(parts, hashEnd);
  if (ends.length === 0) return yield unionOf(form.rows);
  for (const query of [form.rows].flat())
    await store.writeRows(`SELECT *, ${partOf(key, ends)} AS part FROM (${query})`, folder, { by: 'part', rowBytes });
  for (let part = 0; part <= ends.length; part += 1) {
    const file = join(folder, `part=${part}`);
    if (!existsSync(file)) continue;
    const rows = `FROM ${readRows(file)}`;
    const held = await store.number(`SELECT count(*) AS number ${rows}`);
    if (held <= MOST_EXCESS * atOnce) yield rows;
    else yield* dividedRows({ rows, key, rowBytes }, held, atOnce, join(folder, `again-${part}`), store);
    rmSync(file, { recursive: true });
  }
}

/** Largest accepted number of rows of a part, as a multiple of what it should have: samples are not exact, and files take time. */
const MOST_EXCESS = 1.5;

const unionOf = (rows: KeyedRows['rows']): string =>
  [rows]
    .flat()
    .map((query) => `(${query})`)
    .join(' UNION ALL ');

/** Returns SQL for the number of the part of a key: the number of `ends` that are not above it. */
function partOf(key: string, ends: readonly string[], first = 0): string {
  if (ends.length === 0) return `${first}`;
  const middle = ends.length >> 1;
  const [below, above] = [partOf(key, ends.slice(0, middle), first), partOf(key, ends.slice(middle + 1), first + middle + 1)];
  return `CASE WHEN ${key} < ${literal(ends[middle] ?? '')} THEN ${below} ELSE ${above} END`;
}

/** Returns keys that divide rows into parts of about equal size. Any keys give the same sorted rows. */
async function sampledEnds(rows: string, parts: number, key: string, store: Store): Promise<string[]> {
  const samples = await store.rows(
    `SELECT s.key::VARCHAR AS key FROM (SELECT ${key} AS key FROM (${rows}) USING SAMPLE reservoir(${parts * SAMPLES_PER_PART} ROWS) REPEATABLE (1)) AS s ORDER BY s.key`,
    { key: text },
  );
  const ends = Array.from({ length: parts - 1 }, (_, i) => samples[Math.floor(((i + 1) * samples.length) / parts)]?.key);
  return [...new Set(ends.filter((end) => end !== undefined))].filter((end) => end !== samples[0]?.key);
}

const evenEnds = (parts: number, hashEnd: number): string[] =>
  Array.from({ length: parts - 1 }, (_, i) => String(Math.ceil(((i + 1) * hashEnd) / parts)));
