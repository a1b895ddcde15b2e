/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and of runes. They count once the
 * index names them. Equal rows always give equal bytes, so unchanged files are recognised.
 */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Kind, type RowFile, rowsName } from '../../contract/rowsSchemas.ts';
import { LineFile } from '../../disk/lineFile.ts';
import { firstLineOf, isDiskFailure, isDiskFull } from '../../duckdb/duckdbErrors.ts';
import { readCsv, readFiles } from '../../duckdb/readFilesSql.ts';
import { int, type Store } from '../../duckdb/store.ts';
import { columnsOf } from '../../duckdb/table.ts';
import { CliError } from '../../errors.ts';
import { checkFile, placeFile } from '../../rows/rowsFolder.ts';
import { contentsOf, copyTable, HEIGHTS_PER_FILE, hundredOf, NODE_LEDGER, RUNES } from '../../rows/rowsForm.ts';
import type { LedgerRow, RuneRow } from '../../runes/ledgerRows.ts';
import { removeWorkFiles, workFile, writeError } from '../pulledFiles.ts';
import type { Heights } from '../pullOptions.ts';

const FORMS = { files: NODE_LEDGER, runes: RUNES } as const;
const RUNE_COLUMNS = RUNES.fields.map(({ column }) => column as keyof RuneRow);

/** Maximum number of files that are being converted to Parquet or wait for it. With more, `endFile` waits. */
const MOST_WAITING = 3;

/** New files of a range of blocks. */
export type Made = { readonly [kind in Kind]?: RowFile };

export class RowFiles {
  readonly #folder: string;
  readonly #store: Store;
  /** Temporary CSV files in PostgreSQL's format: no header, and NULL is an empty field without quotes. */
  #ledger: LineFile;
  #runes: LineFile;
  /** Conversions that have begun, in order. */
  #making: Promise<Made>[] = [];
  /** Resolves after the latest conversion. Conversions run one after another, because each uses all cores. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, store: Store) {
    this.#folder = folder;
    this.#store = store;
    [this.#ledger, this.#runes] = this.#csvFiles();
  }

  addRow(row: LedgerRow): void {
    this.#ledger.add(lineOf(row));
  }

  addRune(row: RuneRow): void {
    this.#runes.add(RUNE_COLUMNS.map((column) => cellOf(row[column])).join(','));
  }

  /**
   * Begins to convert the runes of these blocks, and their rows from `rowsFrom` on. Waits if too many files are being
   * converted.
   */
  async endFile(heights: Heights, rowsFrom: number): Promise<void> {
    const [ledger, runes] = [this.#ledger, this.#runes];
    [this.#ledger, this.#runes] = this.#csvFiles();
    const making = (async () => ({
      ...(await this.#convert('files', ledger, { ...heights, first: Math.max(heights.first, rowsFrom) })),
      ...(await this.#convert('runes', runes, heights)),
    }))();
    // A later `await` of this promise throws its error. Until then, the error must not count as an unhandled rejection.
    making.catch(() => undefined);
    this.#making.push(making);
    await this.#making.at(-MOST_WAITING);
  }

  /** Resolves to the files of all blocks since the last call, when they are in the folder. */
  finished(): Promise<Made[]> {
    return Promise.all(this.#making.splice(0));
  }

  /** Drops all rows and runes since the last call of `finished`. */
  async discard(): Promise<void> {
    await Promise.allSettled(this.#making.splice(0));
    for (const file of [this.#ledger, this.#runes]) file.close();
    [this.#ledger, this.#runes] = this.#csvFiles();
    removeWorkFiles(this.#folder);
  }

  /** Joins files into one file of these blocks. Throws an InputError if a file is damaged. */
  async join(kind: Kind, files: readonly RowFile[], heights: Heights): Promise<RowFile> {
    return this.#write(kind, await this.#checked(kind, files), heights);
  }

  /** Writes files of runes again, with a file for each hundred blocks. Throws an InputError if a file is damaged. */
  async divideRunes(files: readonly RowFile[]): Promise<RowFile[]> {
    const runes = `(SELECT DISTINCT * FROM ${await this.#checked('runes', files)})`;
    const divided: RowFile[] = [];
    const hundreds = `SELECT DISTINCT block_height - block_height % ${HEIGHTS_PER_FILE} AS first FROM ${runes} ORDER BY first`;
    for (const { first } of await this.#store.rows(hundreds, { first: int })) {
      const heights = hundredOf(first);
      const rows = `(FROM ${runes} WHERE block_height BETWEEN ${heights.first} AND ${heights.last})`;
      divided.push(await this.#write('runes', rows, heights));
    }
    return divided;
  }

  /** Returns SQL of the rows of files. Checks the files, because new files would hide damage in them. */
  async #checked(kind: Kind, files: readonly RowFile[]): Promise<string> {
    for (const file of files) await checkFile(this.#folder, kind, file);
    return readFiles(
      'parquet',
      files.map((file) => join(this.#folder, rowsName(kind, file))),
    );
  }

  #csvFiles(): [LineFile, LineFile] {
    return [new LineFile(workFile(this.#folder, '.csv')), new LineFile(workFile(this.#folder, '.csv'))];
  }

  async #convert(kind: Kind, rows: LineFile, heights: Heights): Promise<Made> {
    if (rows.count === 0) return {};
    const { fields } = FORMS[kind];
    const typed = Object.entries(columnsOf(fields)).map(([name, type]) => `"${name}"::${type} AS "${name}"`);
    const names = fields.map(({ column }) => column);
    const csv = `(SELECT ${typed.join(', ')} FROM ${readCsv([rows.file], names, '\\n', ['header = false'])})`;
    const file = await this.#write(kind, csv, heights, () => rows.end());
    rmSync(rows.file);
    return { [kind]: file };
  }

  /** Writes rows, given as SQL of a table, to a file of these blocks, after all conversions that were started before. */
  async #write(kind: Kind, rows: string, heights: Heights, before = () => {}): Promise<RowFile> {
    const [path, form] = [workFile(this.#folder, '.parquet'), FORMS[kind]];
    try {
      before();
      const written = this.#last.then(async () => {
        await this.#store.run(copyTable(`FROM ${rows}`, form.order, resolve(path)));
        return contentsOf([path], form, this.#store);
      });
      this.#last = written.catch(() => undefined);
      const [content] = await written;
      return await placeFile(this.#folder, path, kind, heights, content);
    } catch (error) {
      if (error instanceof CliError && !isDiskFull(error) && !isDiskFailure(error)) throw error;
      throw writeError(this.#folder, new Error(firstLineOf(error)));
    }
  }
}

/**
 * Returns the cells of a row as CSV, in the order of NODE_LEDGER. The code names each column, because a loop over the
 * columns takes several times as long. Only the cell `spent` has characters that need quotes.
 */
const lineOf = (row: LedgerRow): string =>
  `${row.rune_id},${row.block_hash},${row.block_height},${row.tx_index},${row.event_index},${row.tx_id},${row.output ?? ''},${row.address ?? ''},${row.receiver_address ?? ''},${row.amount ?? ''},${row.operation},${row.timestamp},${row.spent === null ? '' : `"${row.spent}"`}`;

/** Returns a cell as CSV. Cells with characters that could need quotes are quoted. */
const cellOf = (value: RuneRow[keyof RuneRow]): string =>
  value === null ? '' : typeof value === 'string' && !/^[0-9A-Za-z:]+$/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
