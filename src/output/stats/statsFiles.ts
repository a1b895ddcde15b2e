/**
 * Writes the stats files, one for each 100 heights: `runes/v1/stats/840000.json`. Builds render the JSON in SQL, because a full history has
 * millions of lines, and making a line from a JavaScript object takes about 10 µs.
 */
import { isWithin, portionsOf } from '../../duckdb/blockRanges.ts';
import { joinedBlobs, readDoubles } from '../../duckdb/columns.ts';
import { int, literal, type Store } from '../../duckdb/store.ts';
import type { Table, TableWith } from '../../duckdb/table.ts';
import type { FileSink } from '../../engine/render/pageFiles.ts';
import { JSON_TEXT, jsonOf } from '../../engine/render/renderRecordSql.ts';
import type { BLOCK_RUNES, RUNE_COUNTS } from '../../engine/state/countBlocks.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { STATS_PER_FILE, statsFilePath } from '../../pages/filePaths.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { spellHex } from '../../pages/parseIds.ts';

export const BETWEEN = ',\n';

/** Joins lines into the bytes of a file. Each line must begin with BETWEEN. */
const fileOf = (blocks: Uint8Array, runes: Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from('{"blocks":[\n'),
    blocks.subarray(BETWEEN.length),
    Buffer.from('\n],"runes":[\n'),
    runes.subarray(BETWEEN.length),
    Buffer.from('\n]}\n'),
  ]);

export const recordsSql = OPERATIONS.join(' + ');
export const COUNTS = Object.fromEntries(OPERATIONS.map((name) => [name, [name]]));

/** Returns the SQL expressions whose concatenation is a line with a JSON object. `fields` has the SQL expressions of each value, by key. */
export const lineOf = (fields: Readonly<Record<string, readonly string[]>>): string[] => [
  ...Object.entries(fields).flatMap(([name, value], i) => [`'${i === 0 ? `${BETWEEN}{` : ','}"${name}":'`, ...value]),
  `'}'`,
];

export function blockLine(dialect: Dialect): string {
  const pieces = lineOf({
    height: ['block_height'],
    hash: [`'"${spellHex('', dialect)}'`, 'block_hash', `'"'`],
    timestamp: ['"timestamp"'],
    transactions: ['transactions'],
    records: ['records'],
    ...Object.fromEntries(OPERATIONS.map((name, code) => [name, [`split_part(operations, ',', ${code + 1})`]])),
  });
  return `encode(concat(${pieces.join(', ')}))`;
}

/** SQL expression of a rune's line, for a row with the columns that SUMS selects. */
export const RUNE_LINE = `encode(${jsonOf(['rune_id', 'name', 'spaced_name'], (text) => {
  const quoted = (column: string) => [`'"'`, text(column), `'"'`];
  const [name, spaced_name] = [quoted('name'), quoted('spaced_name')];
  return lineOf({ id: quoted('rune_id'), number: ['number'], name, spaced_name, records: [recordsSql], ...COUNTS });
})})`;

export const SUMS = `rune_id, min(number) AS number, min(name) AS name, min(spaced_name) AS spaced_name, ${OPERATIONS.map((name) => `sum(${name}) AS ${name}`).join(', ')}`;

/** Regular expression for rune ids in valid data, `block:tx`. Wrong data may have any text as an id. */
const ID_FORM = '^([0-9]{1,15}):([0-9]{1,15})$';

/** ORDER BY expressions that sort rune ids: by block and transaction as numbers, and then by their bytes. */
export const ID_ORDER = [1, 2]
  .map((i) => `TRY_CAST(regexp_extract(rune_id, ${literal(ID_FORM)}, ${i}) AS BIGINT) NULLS LAST`)
  .concat('rune_id')
  .join(', ');

const FIRST = `block_height - block_height % ${STATS_PER_FILE}`;
export interface StatsTables {
  readonly blocks: TableWith<'block_height' | 'block_hash' | 'timestamp' | 'transactions' | 'records' | 'operations'>;
  readonly blockRunes: Table<typeof BLOCK_RUNES>;
  readonly runeCounts: Table<typeof RUNE_COUNTS>;
}

/** Yields the lines of a query (first DOUBLE, line BLOB) by file, whose lowest height is `first`. A file may have several items. */
export async function* readLines(sql: string, store: Store): AsyncGenerator<{ readonly first: number; readonly bytes: Uint8Array }> {
  for await (const chunk of store.stream(sql)) {
    const [firsts, { bytes, offsets }] = [readDoubles(chunk, 0), joinedBlobs(chunk, 1)];
    for (let row = 0; row < chunk.rowCount; ) {
      const [first = 0, begin] = [firsts[row], offsets[row]];
      while (row < chunk.rowCount && firsts[row] === first) row += 1;
      yield { first, bytes: bytes.subarray(begin, offsets[row]) };
    }
  }
}

/** Memory that DuckDB needs to sum and to render the counts of a rune in a file, in bytes. */
const SUM_BYTES = 1024;

/**
 * Writes the stats files of new, changed and removed blocks. Returns the paths of files that no longer have blocks. Sums some files at a
 * time: those of all of history have millions of runes.
 */
export async function writeStats(
  dialect: Dialect,
  state: StatsTables,
  replaced: TableWith<'block_height'>,
  sink: Pick<FileSink, 'file'>,
  { listedAtOnce }: Pick<WorkLimits, 'listedAtOnce'>,
  store: Store,
): Promise<string[]> {
  const isTouched = `${FIRST} IN (SELECT ${FIRST} FROM ${replaced})`;
  await store.run(JSON_TEXT);
  const counted = `SELECT ${FIRST} AS first, count(*) AS records FROM ${state.blockRunes} WHERE ${isTouched} GROUP BY first`;
  const touched = await store.rows(
    `SELECT first, coalesce(records, 0)::BIGINT AS records FROM (SELECT DISTINCT ${FIRST} AS first FROM ${replaced}) LEFT JOIN (${counted}) USING (first)
     ORDER BY first`,
    { first: int, records: int },
  );
  const gone: string[] = [];
  const portions = portionsOf(touched, Math.min(listedAtOnce, Math.ceil(store.memory / SUM_BYTES)));
  if (portions.length > 1) countCrossing('listedAtOnce');
  for (const portion of portions) {
    const range = { first: portion[0]?.first ?? 0, last: (portion.at(-1)?.first ?? 0) + STATS_PER_FILE - 1 };
    const isDue = `${isWithin(range)} AND ${isTouched}`;
    const blocks = new Map<number, Uint8Array[]>();
    const blockSql = `SELECT (${FIRST})::DOUBLE, ${blockLine(dialect)} FROM ${state.blocks} WHERE ${isDue} ORDER BY block_height`;
    for await (const { first, bytes } of readLines(blockSql, store)) blocks.set(first, [...(blocks.get(first) ?? []), bytes]);

    let current: number | undefined;
    let runes: Uint8Array[] = [];
    const end = () => {
      if (current !== undefined) sink.file(statsFilePath(current), fileOf(Buffer.concat(blocks.get(current) ?? []), Buffer.concat(runes)));
      runes = [];
    };
    const runeSql = `SELECT first::DOUBLE, ${RUNE_LINE} FROM (SELECT ${FIRST} AS first, ${SUMS} FROM ${state.blockRunes} WHERE ${isDue} GROUP BY first, rune_id)
      ORDER BY first, ${ID_ORDER}`;
    for await (const { first, bytes } of readLines(runeSql, store)) {
      if (first !== current) end();
      current = first;
      runes.push(bytes);
    }
    end();
    for (const { first } of portion) if (!blocks.has(first)) gone.push(statsFilePath(first));
  }
  return gone;
}
