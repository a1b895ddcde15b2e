/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and of runes. They count once the
 * index names them. Equal rows always give equal bytes, so unchanged files are recognised.
 */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Kind, type RowFile, rowsName } from '../../contract/rowsSchemas.ts';
import { LineFile } from '../../disk/lineFile.ts';
import { isWithin } from '../../duckdb/blockRanges.ts';
import { firstLineOf, isDiskFailure, isDiskFull } from '../../duckdb/duckdbErrors.ts';
import { readCsv, readFiles } from '../../duckdb/readFilesSql.ts';
import { int, type Store } from '../../duckdb/store.ts';
import { columnsOf } from '../../duckdb/table.ts';
import { CliError } from '../../errors.ts';
import { groupBy } from '../../groupBy.ts';
import { checkFile, moveIn } from '../../rows/rowsFolder.ts';
import { copyTable, entriesOf, type FileOfRows, HEIGHTS_PER_FILE, hundredOf, NODE_LEDGER, RUNES } from '../../rows/rowsForm.ts';
import type { LedgerRow, RuneRow } from '../../runes/ledgerRows.ts';
import { removeWorkFiles, workFile, writeError } from '../pulledFiles.ts';
import type { Heights } from '../pullOptions.ts';

const FORMS = { files: NODE_LEDGER, runes: RUNES } as const;
const RUNE_COLUMNS = RUNES.fields.map(({ column }) => column as keyof RuneRow);

/** Number of files that are converted to Parquet at once. If more wait, `endFile` waits. */
const AT_ONCE = 32;

/** A new file and its kind. */
export type Made = readonly [kind: Kind, file: RowFile];

/** Rows that become a file of these blocks: SQL of a table and, for new rows, the CSV file that it reads. */
interface Waiting {
  readonly kind: Kind;
  readonly rows: string;
  readonly heights: Heights;
  readonly csv?: LineFile;
}

export class RowFiles {
  readonly #folder: string;
  readonly #store: Store;
  /** Temporary CSV files in PostgreSQL's format: no header, and NULL is an empty field without quotes. */
  #ledger: LineFile;
  #runes: LineFile;
  #waiting: Waiting[] = [];
  #made: Made[] = [];
  /** Resolves when no file waits. Files are converted while the pull reads on, in order. */
  #converting: Promise<void> | undefined;

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
    this.#add('files', this.#ledger, { ...heights, first: Math.max(heights.first, rowsFrom) });
    this.#add('runes', this.#runes, heights);
    [this.#ledger, this.#runes] = this.#csvFiles();
    if (this.#waiting.length > 0) this.#converting ??= this.#convert();
    // A later `await` of this promise throws its error. Until then, the error must not count as an unhandled rejection.
    this.#converting?.catch(() => undefined);
    if (this.#waiting.length > AT_ONCE) await this.#converting;
  }

  #add(kind: Kind, csv: LineFile, heights: Heights): void {
    if (csv.count === 0) return;
    const { fields } = FORMS[kind];
    const typed = Object.entries(columnsOf(fields)).map(([name, type]) => `"${name}"::${type} AS "${name}"`);
    const names = fields.map(({ column }) => column);
    const rows = `(SELECT ${typed.join(', ')} FROM ${readCsv([csv.file], names, '\\n', ['header = false'])})`;
    this.#waiting.push({ kind, rows, heights, csv });
  }

  /** Converts the files that wait. If this fails, `#converting` stays rejected. */
  async #convert(): Promise<void> {
    while (this.#waiting.length > 0) {
      const files = this.#waiting.splice(0, AT_ONCE);
      for (const made of await this.#write(files)) this.#made.push(made);
      for (const { csv } of files) if (csv !== undefined) rmSync(csv.file);
    }
    this.#converting = undefined;
  }

  /** Resolves to the files of all blocks since the last call, when they are in the folder. */
  async finished(): Promise<Made[]> {
    await this.#converting;
    return this.#made.splice(0);
  }

  /** Drops all rows and runes since the last call of `finished`. */
  async discard(): Promise<void> {
    const open = this.#waiting.splice(0).flatMap(({ csv }) => csv ?? []);
    await this.#converting?.catch(() => undefined);
    [this.#converting, this.#made] = [undefined, []];
    for (const file of [this.#ledger, this.#runes, ...open]) file.close();
    [this.#ledger, this.#runes] = this.#csvFiles();
    removeWorkFiles(this.#folder);
  }

  /** Joins files into one file of the blocks of each group. Throws an InputError if a file is damaged. */
  async join(kind: Kind, groups: readonly (Heights & { readonly files: readonly RowFile[] })[]): Promise<RowFile[]> {
    const joined: Waiting[] = [];
    for (const { files, ...heights } of groups) joined.push({ kind, rows: await this.#checked(kind, files), heights });
    return (await this.#write(joined)).map(([, file]) => file);
  }

  /** Writes files of runes again, with a file for each hundred blocks. Throws an InputError if a file is damaged. */
  async divideRunes(files: readonly RowFile[]): Promise<RowFile[]> {
    const runes = `(SELECT DISTINCT * FROM ${await this.#checked('runes', files)})`;
    const hundreds = `SELECT DISTINCT block_height - block_height % ${HEIGHTS_PER_FILE} AS first FROM ${runes} ORDER BY first`;
    const divided = (await this.#store.rows(hundreds, { first: int })).map(({ first }) => {
      const heights = hundredOf(first);
      return { kind: 'runes', rows: `(FROM ${runes} WHERE ${isWithin(heights)})`, heights } as const;
    });
    return (await this.#write(divided)).map(([, file]) => file);
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

  /** Writes rows to files of the folder. */
  async #write(files: readonly Waiting[]): Promise<Made[]> {
    try {
      const written: (FileOfRows & { readonly kind: Kind })[] = [];
      for (const { kind, rows, heights, csv } of files) {
        csv?.end();
        const path = workFile(this.#folder, '.parquet');
        await this.#store.run(copyTable(`FROM ${rows}`, FORMS[kind].order, resolve(path)));
        written.push({ ...heights, kind, path });
      }
      const made: Made[] = [];
      for (const [kind, some] of groupBy(written, (file) => file.kind))
        for (const [i, entry] of (await entriesOf(some, FORMS[kind], this.#store)).entries()) {
          const path = some[i]?.path ?? '';
          if (typeof entry === 'string') throw new Error(`${path}: ${entry}`);
          await moveIn(this.#folder, path, kind, entry);
          made.push([kind, entry]);
        }
      return made;
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
