/**
 * Reads a Parquet file of another mirror, checks it, and writes its rows to a new file. Runs in a separate process
 * (readerProcesses.ts). There, DuckDB can open only the files of the request, and no network connections.
 *
 * So a wrong file cannot crash the pull, keep it busy forever or fill its memory. The process is not a sandbox: code
 * that runs through a vulnerability of DuckDB has the rights of the process.
 */
import { rmSync } from 'node:fs';
import { z } from 'zod';
import { readFiles, readParquetFooter, readParquetGroups } from '../../../duckdb/readFilesSql.ts';
import { identifier, int, nullable, Store } from '../../../duckdb/store.ts';
import { messageOf } from '../../../errors.ts';
import type { WorkLimits } from '../../../limits.ts';
import { blocksOfRows, runesOfRows } from '../../../rows/blocksOfRows.ts';
import { firstUnbalanced } from '../../../rows/firstUnbalanced.ts';
import { copyRows, copyTable, formFault, hasFullGroups, ledgerForm, RUNES, type TableForm } from '../../../rows/rowsForm.ts';

const height = z.int().min(0);
const part = z.strictObject({ path: z.string(), rows: z.int().min(0), first: height, last: height });

/** Files to read, with their claimed number of rows, and the file to write. */
const request = z.strictObject({
  parts: z.array(part),
  /** Path of a checked file with the runes of the rows. Undefined if the file to read itself has runes, not rows. */
  runes: z.string().optional(),
  hasSpent: z.boolean(),
  /** Heights of the rows to write. */
  first: height,
  last: height,
  to: z.string(),
  memoryLimit: z.string(),
  limits: z.strictObject({ rowBytes: z.number(), spentBytes: z.number() }),
});
export type RowsRequest = z.infer<typeof request>;

/** Content of the written file, or the reason why a file is refused. */
export const rowsReply = z.union([
  z.strictObject({ fault: z.string() }),
  z.strictObject({
    rows: z.int(),
    blocks: z.array(z.strictObject({ height, hash: z.string(), records: z.int(), digest: z.string() })),
  }),
]);
export type RowsReply = z.infer<typeof rowsReply>;

/** Thrown for a file that no mirror of this program would publish. */
class Refusal extends Error {}

/** Reads requests, one per line, until the input ends. Writes one line with the reply to each request. */
export async function answerRequests(input: AsyncIterable<string>, write: (line: string) => void): Promise<void> {
  for await (const line of input) write(`${JSON.stringify(await answer(request.parse(JSON.parse(line))))}\n`);
}

async function answer({ parts, runes, hasSpent, first, last, to, memoryLimit, limits }: RowsRequest): Promise<RowsReply> {
  const only = [...parts.map(({ path }) => path), to, ...(runes === undefined ? [] : [runes])];
  const store = await Store.open({ memoryLimit, threads: 1, scratch: `${to}.spilled`, only });
  const form = runes === undefined ? RUNES : ledgerForm(hasSpent);
  try {
    for (const one of parts) await check(one, form, runes !== undefined, limits, store);
    const paths = parts.map(({ path }) => path);
    const isWanted = runes === undefined ? 'true' : `block_height BETWEEN ${first} AND ${last}`;
    const none = form.fields.map(({ column, kind }) => `NULL::${kind === 'integer' ? 'BIGINT' : 'VARCHAR'} AS ${identifier(column)}`);
    const rows =
      paths.length === 0 ? `SELECT ${none.join(', ')} WHERE false` : `SELECT * FROM ${readFiles('parquet', paths)} WHERE ${isWanted}`;
    // Published files are sorted. So if all rows of a single file are wanted, they are copied without a sort. But if the
    // file has row groups that are not full, its rows are sorted too, because only then do equal rows give equal files
    // (hasFullGroups).
    const [part] = parts;
    const isWhole = parts.length === 1 && part !== undefined && (runes === undefined || (first <= part.first && part.last <= last));
    const keepsOrder = isWhole && (await hasFullGroups(part.path, store));
    await store.run(keepsOrder ? copyRows(rows, to) : copyTable(rows, form.order, to));
    const written = await store.number(`SELECT num_rows AS number FROM ${readParquetFooter(to)}`);
    if (runes === undefined) return { rows: written, blocks: [] };
    const theirs = await runesOfRows(to, runes, store);
    const unbalanced = hasSpent ? await firstUnbalanced(to, theirs, store) : undefined;
    if (unbalanced !== undefined) throw new Refusal(unbalanced);
    return { rows: written, blocks: await blocksOfRows(to, theirs, true, store) };
  } catch (error) {
    // Errors of DuckDB may quote values of the file, so the message is shortened.
    return { fault: error instanceof Refusal ? error.message : `it cannot be read: ${messageOf(error).split('\n')[0]?.slice(0, 200)}` };
  } finally {
    store.close();
    rmSync(`${to}.spilled`, { recursive: true, force: true });
  }
}

/** Maximum size of a cell in bytes, by column; 64 for all other columns. A file with a longer cell is refused. */
const MOST_BYTES: Readonly<Record<string, number>> = { address: 200, receiver_address: 200, name: 28, spaced_name: 112, symbol: 16 };

/**
 * Checks the sizes in the footer before any row is read, so that unpacking cannot fill the memory. Then checks the
 * columns and the lengths of cells, and that all rows are of the blocks from `first` to `last`.
 */
async function check(
  { path, rows, first, last }: z.infer<typeof part>,
  form: TableForm,
  isLedger: boolean,
  limits: SizeLimits,
  store: Store,
): Promise<void> {
  const [scan, heights] = [readFiles('parquet', [path]), last - first + 1];
  const found = await store.row(`SELECT num_rows AS rows FROM ${readParquetFooter(path)}`, { rows: int });
  if (found.rows !== rows) throw new Refusal(`it has ${found.rows} rows, but the list says ${rows}`);
  const size = await store.number(
    `SELECT coalesce(sum(total_uncompressed_size), 0)::BIGINT AS number, coalesce(max(row_group_num_rows), 0) AS rows FROM ${readParquetGroups([path])}`,
  );
  if (size > mostBytes(rows, heights, limits)) throw new Refusal(`it has ${size} bytes after unpacking, too many for ${rows} rows`);
  const fault = await formFault(path, form, store);
  if (fault !== undefined) throw new Refusal(fault);
  const texts = form.fields.filter(({ kind }) => kind !== 'integer' && kind !== 'flag' && kind !== 'spent').map(({ column }) => column);
  const isLong = texts.map((column) => `strlen(${identifier(column)}) > ${MOST_BYTES[column] ?? 64}`);
  const missing = form.fields.filter(({ required }) => required).map(({ column }) => `${identifier(column)} IS NULL`);
  const spent = form.fields.some(({ kind }) => kind === 'spent') ? 'coalesce(sum(strlen(spent)), 0)::BIGINT' : '0';
  const facts = await store.row(
    `SELECT count(*) FILTER (${isLong.join(' OR ')}) AS long, count(*) FILTER (${missing.join(' OR ')})${isLedger ? '' : ' + count(*) - count(DISTINCT id)'} AS missing,
       ${isLedger ? 'min(block_height)' : '0'} AS low, ${isLedger ? 'max(block_height)' : '0'} AS high, ${spent} AS spent FROM ${scan}`,
    { long: int, missing: int, low: nullable(int), high: nullable(int), spent: int },
  );
  if (facts.long > 0) throw new Refusal('it has a cell that is too long');
  if (facts.missing > 0) throw new Refusal(isLedger ? 'it lacks cells that every row has' : 'it lacks cells, or has a rune twice');
  if (isLedger && ((facts.low ?? first) < first || (facts.high ?? last) > last)) throw new Refusal('it has rows of other blocks');
  if (facts.spent > heights * limits.spentBytes)
    throw new Refusal(`it has ${facts.spent} bytes of spent outputs, more than ${heights * limits.spentBytes}`);
}

type SizeLimits = Pick<WorkLimits, 'rowBytes' | 'spentBytes'>;

/**
 * Returns the maximum size in bytes of a file with this many rows and heights. A block has less than 4 MB of spent
 * outputs.
 */
export const mostBytes = (rows: number, heights: number, { rowBytes, spentBytes }: SizeLimits): number =>
  64 * 1024 + rows * rowBytes + heights * spentBytes;
