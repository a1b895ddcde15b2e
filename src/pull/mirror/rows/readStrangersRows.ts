/**
 * Reads and checks a Parquet file of another mirror, in a separate process (readerProcesses.ts), so that a wrong file cannot crash the
 * pull, keep it busy forever or fill its memory. There, DuckDB can open only the files of the request, and no network connections. The
 * process is not a sandbox: code that runs through a vulnerability of DuckDB has the rights of the process.
 */
import { rmSync } from 'node:fs';
import { z } from 'zod';
import { type FieldKind, MAX_DIVISIBILITY, RULES } from '../../../contract/fields.ts';
import { KINDS } from '../../../contract/rowsSchemas.ts';
import { ParquetError, parquetFacts } from '../../../duckdb/parquetFacts.ts';
import { readFiles } from '../../../duckdb/readFilesSql.ts';
import { flag, identifier, int, Store } from '../../../duckdb/store.ts';
import { columns } from '../../../duckdb/table.ts';
import { messageOf } from '../../../errors.ts';
import { isValid } from '../../../input/cellSql.ts';
import type { WorkLimits } from '../../../limits.ts';
import { firstUnbalanced } from '../../../rows/firstUnbalanced.ts';
import { formFaults, ledgerForm, RUNES, type TableForm } from '../../../rows/rowsForm.ts';

/** A file to check: what the index says about it. */
const request = z.strictObject({
  path: z.string(),
  kind: z.enum(KINDS),
  rows: z.int(),
  first: z.int(),
  last: z.int(),
  hasSpent: z.boolean(),
  /** Paths of checked files with the runes that the blocks etched. */
  runes: z.array(z.string()),
  memoryLimit: z.string(),
  limits: z.strictObject({ rowBytes: z.number(), spentBytes: z.number() }),
});
export type RowsRequest = z.infer<typeof request>;

/** Why a file is refused; nothing if it is accepted. */
export const rowsReply = z.strictObject({ fault: z.string().optional() });

/** Reads requests, one per line, until the input ends. Writes one line with the reply to each request. */
export async function answerRequests(input: AsyncIterable<string>, write: (line: string) => void): Promise<void> {
  for await (const line of input) write(`${JSON.stringify(await answer(request.parse(JSON.parse(line))))}\n`);
}

async function answer(request: RowsRequest): Promise<z.infer<typeof rowsReply>> {
  const { path, runes, memoryLimit } = request;
  const scratch = `${path}.spilled`;
  const store = await Store.open({ memoryLimit, threads: 1, scratch, only: [path, ...runes] });
  try {
    return { fault: await faultOf(request, store) };
  } catch (error) {
    if (error instanceof ParquetError) return { fault: error.message };
    // Errors of DuckDB may quote values of the file, so the message is shortened.
    return { fault: `it cannot be read: ${messageOf(error).split('\n')[0]?.slice(0, 200)}` };
  } finally {
    store.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

const PREMINES = columns('id VARCHAR, premine VARCHAR');

/** Maximum size of a cell in bytes, by column; 64 for all other columns. A file with a longer cell is refused. */
const MOST_BYTES: Readonly<Record<string, number>> = { address: 200, receiver_address: 200, name: 28, spaced_name: 112, symbol: 16 };

/**
 * Checks the sizes in footer and page headers before DuckDB reads the file, so that unpacking cannot fill the memory. Then checks all that
 * a build checks, so that no build refuses the rows. Also checks that cells are short, that all rows are of the blocks from `first` to
 * `last`, and that rows of a node conserve runes.
 */
async function faultOf({ path, kind, rows, first, last, hasSpent, runes, limits }: RowsRequest, store: Store): Promise<string | undefined> {
  const [heights, isLedger] = [last - first + 1, kind === 'files'];
  const form = isLedger ? ledgerForm(hasSpent) : RUNES;
  const found = parquetFacts(path);
  if (found.rows !== rows) return `it has ${found.rows} rows, but the list says ${rows}`;
  if (!found.isPlain) return 'its pages are in other encodings than this program writes';
  if (found.unpacked > mostBytes(rows, isLedger ? heights : 1, limits))
    return `it has ${found.unpacked} bytes after unpacking, too many for ${rows} rows`;
  const fault = (await formFaults([path], form, store)).get(path) ?? (await faultOfCells(path, form, heights, limits, store));
  const contradiction = fault ?? (await (isLedger ? faultOfBlocks : faultOfRunes)(path, first, last, store));
  if (contradiction !== undefined || !isLedger || !hasSpent) return contradiction;
  const premines =
    runes.length === 0 ? 'SELECT NULL::VARCHAR AS id, NULL::VARCHAR AS premine WHERE false' : `FROM ${readFiles('parquet', runes)}`;
  return firstUnbalanced(path, await store.view('premines', PREMINES, `SELECT id, premine FROM (${premines})`), store);
}

async function faultOfCells(
  path: string,
  { fields }: TableForm,
  heights: number,
  { spentBytes }: SizeLimits,
  store: Store,
): Promise<string | undefined> {
  // The rules of canonical cells compare text. Integers are compared as numbers.
  const isInteger = (kind: FieldKind): boolean => kind === 'integer';
  const cells = fields.map(({ column, kind }) => `${identifier(column)}${isInteger(kind) ? '' : '::VARCHAR'} AS ${identifier(column)}`);
  const counts = fields.map((field) => {
    const [column, hasAnyLength] = [identifier(field.column), isInteger(field.kind) || field.kind === 'spent'];
    const isShort = hasAnyLength ? 'true' : `coalesce(strlen(${column}) <= ${MOST_BYTES[field.column] ?? 64}, true)`;
    const isRight = `${isValid({ field, shape: isInteger(field.kind) ? 'integer' : 'canonical' })} AND ${isShort}`;
    return `count(*) FILTER (NOT (${isRight})) AS ${column}`;
  });
  const wrong = await store.row(
    `SELECT ${counts.join(', ')} FROM (SELECT ${cells.join(', ')} FROM ${readFiles('parquet', [path])})`,
    Object.fromEntries(fields.map(({ column }) => [column, int])),
  );
  const bad = fields.find(({ column }) => wrong[column] !== 0);
  if (bad !== undefined)
    return `it has ${wrong[bad.column]} cells in the column ${bad.column} that are missing, too long, or wrong: each ${RULES[bad.kind].rule}`;
  if (!fields.some(({ kind }) => kind === 'spent')) return undefined;
  const spent = await store.number(`SELECT coalesce(sum(strlen(spent)), 0)::BIGINT AS number FROM ${readFiles('parquet', [path])}`);
  return spent > heights * spentBytes ? `it has ${spent} bytes of spent outputs, more than ${heights * spentBytes}` : undefined;
}

/** Largest index of an output: a transaction has it in 32 bits. */
const MOST_VOUT = 2 ** 32 - 1;

/** Finds blocks and transactions that contradict themselves, as input/checkConsistency.ts does, and rows of other blocks. */
async function faultOfBlocks(path: string, first: number, last: number, store: Store): Promise<string | undefined> {
  // The rows are sorted, so all rows of a block and of a transaction are neighbours.
  const place = '(block_height, tx_index, tx_id)';
  const found = await store.row(
    `SELECT coalesce(bool_and(is_same), true) AS are_same, count(*) FILTER (is_next) AS transactions, count(DISTINCT hash(tx_id)) AS ids,
       count(DISTINCT block_height) AS heights, count(DISTINCT block_hash) AS hashes, coalesce(max("output"), 0) AS vout,
       coalesce(min(block_height), ${first}) AS low, coalesce(max(block_height), ${last}) AS high
     FROM (SELECT block_height, block_hash, tx_id, "output", ${place} IS DISTINCT FROM lag(${place}) OVER () AS is_next,
         (block_height IS DISTINCT FROM lag(block_height) OVER () OR block_hash = lag(block_hash) OVER ())
         AND ((block_height, tx_index) IS DISTINCT FROM lag((block_height, tx_index)) OVER () OR tx_id = lag(tx_id) OVER ()) AS is_same
       FROM ${readFiles('parquet', [path])})`,
    { are_same: flag, transactions: int, ids: int, heights: int, hashes: int, vout: int, low: int, high: int },
  );
  if (found.low < first || found.high > last) return 'it has rows of other blocks';
  if (!found.are_same || found.heights > found.hashes) return 'it has two blocks or two transactions in one place, or a block in two';
  // Hashes of ids need less memory than ids. Two ids may have the same hash.
  if (found.transactions > found.ids) {
    const ids = await store.number(`SELECT count(DISTINCT tx_id) AS number FROM ${readFiles('parquet', [path])}`);
    if (found.transactions > ids) return 'it has a transaction in two places';
  }
  return found.vout > MOST_VOUT ? `it has the output ${found.vout} of a transaction, above ${MOST_VOUT}` : undefined;
}

async function faultOfRunes(path: string, first: number, last: number, store: Store): Promise<string | undefined> {
  const found = await store.row(
    `SELECT count(*) - count(DISTINCT id) AS copies, coalesce(max(divisibility), 0) AS divisibility,
       count(*) FILTER (block_height NOT BETWEEN ${first} AND ${last}) AS others FROM ${readFiles('parquet', [path])}`,
    { copies: int, divisibility: int, others: int },
  );
  if (found.others > 0) return 'it has runes of other blocks';
  if (found.copies > 0) return 'it has a rune twice';
  return found.divisibility > MAX_DIVISIBILITY
    ? `it has a rune of the divisibility ${found.divisibility}, above ${MAX_DIVISIBILITY}`
    : undefined;
}

type SizeLimits = Pick<WorkLimits, 'rowBytes' | 'spentBytes'>;

/** Returns the maximum size in bytes of a file with this many rows and heights. A block has less than 4 MB of spent outputs. */
export const mostBytes = (rows: number, heights: number, { rowBytes, spentBytes }: SizeLimits): number =>
  64 * 1024 + rows * rowBytes + heights * spentBytes;
