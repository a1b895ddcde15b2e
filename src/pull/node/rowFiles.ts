/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and of runes. They count once the
 * index names them.
 */
import { join } from 'node:path';
import { type Kind, type RowFile, rowsName } from '../../contract/rowsSchemas.ts';
import { firstLineOf, isDiskFailure, isDiskFull } from '../../duckdb/duckdbErrors.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { int, type Store } from '../../duckdb/store.ts';
import { CliError } from '../../errors.ts';
import { checkFile, placeFile } from '../../rows/rowsFolder.ts';
import { HEIGHTS_PER_FILE, hundredOf, NODE_LEDGER, RUNES } from '../../rows/rowsForm.ts';
import type { LedgerRow, RuneRow } from '../../runes/ledgerRows.ts';
import { CsvFile } from '../csvFile.ts';
import type { Heights } from '../heights.ts';
import { type CsvRows, writeParquet } from '../parquetFile.ts';
import { removeWorkFiles, writeError } from '../writePulled.ts';

const FORMS = { files: NODE_LEDGER, runes: RUNES } as const;
const LEDGER_COLUMNS = NODE_LEDGER.fields.map(({ column }) => column as keyof LedgerRow);
const RUNE_COLUMNS = RUNES.fields.map(({ column }) => column as keyof RuneRow);

/** Maximum number of files that are being converted to Parquet or wait for it. With more, `endFile` waits. */
const MOST_WAITING = 3;

/** New files of a range of blocks. */
export type Made = { readonly [kind in Kind]?: RowFile };

export class RowFiles {
  readonly #folder: string;
  readonly #store: Store;
  #ledger: CsvFile<keyof LedgerRow>;
  #runes: CsvFile<keyof RuneRow>;
  /** Conversions that have begun, in order. */
  #making: Promise<Made>[] = [];

  constructor(folder: string, store: Store) {
    this.#folder = folder;
    this.#store = store;
    this.#ledger = new CsvFile(folder, LEDGER_COLUMNS);
    this.#runes = new CsvFile(folder, RUNE_COLUMNS);
  }

  addRow(row: LedgerRow): void {
    this.#ledger.addLine(lineOf(row));
  }

  addRune(row: RuneRow): void {
    this.#runes.add(row);
  }

  /** Begins to convert the rows and runes of these blocks. Waits if too many files are being converted. */
  async endFile(heights: Heights): Promise<void> {
    const [ledger, runes] = [this.#ledger, this.#runes];
    this.#begin();
    const making = (async () => ({
      ...(await this.#convert('files', ledger, heights)),
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
    this.#begin();
    removeWorkFiles(this.#folder);
  }

  /** Joins files into one file of these blocks. Throws an InputError if a file is damaged. */
  async join(kind: Kind, files: readonly RowFile[], heights: Heights): Promise<RowFile> {
    return this.#write(kind, { csv: undefined, more: `FROM ${await this.#checked(kind, files)}` }, heights);
  }

  /** Writes files of runes again, with a file for each hundred blocks. Throws an InputError if a file is damaged. */
  async divideRunes(files: readonly RowFile[]): Promise<RowFile[]> {
    const runes = `FROM (SELECT DISTINCT * FROM ${await this.#checked('runes', files)})`;
    const divided: RowFile[] = [];
    const hundreds = `SELECT DISTINCT block_height - block_height % ${HEIGHTS_PER_FILE} AS first ${runes} ORDER BY first`;
    for (const { first } of await this.#store.rows(hundreds, { first: int })) {
      const heights = hundredOf(first);
      const more = `${runes} WHERE block_height BETWEEN ${heights.first} AND ${heights.last}`;
      divided.push(await this.#write('runes', { csv: undefined, more }, heights));
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

  #begin(): void {
    [this.#ledger, this.#runes] = [new CsvFile(this.#folder, LEDGER_COLUMNS), new CsvFile(this.#folder, RUNE_COLUMNS)];
  }

  async #convert(kind: Kind, rows: CsvFile<string>, heights: Heights): Promise<Made> {
    if (rows.rows === 0) return {};
    const file = await this.#write(kind, { csv: rows.end() }, heights);
    rows.drop();
    return { [kind]: file };
  }

  async #write(kind: Kind, rows: Omit<CsvRows, 'form'>, heights: Heights): Promise<RowFile> {
    try {
      const { path, ...content } = await writeParquet(this.#folder, { ...rows, form: FORMS[kind] }, this.#store);
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
