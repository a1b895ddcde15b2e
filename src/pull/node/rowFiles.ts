/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and the table of runes. Moves the
 * temporary files to their paths together, the table of runes first, so that a build finds the runes of all rows.
 */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../disk/sync.ts';
import { firstLineOf, isDiskFailure, isDiskFull } from '../../duckdb/duckdbErrors.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import type { Store } from '../../duckdb/store.ts';
import { CliError, codeOf, messageOf } from '../../errors.ts';
import { NODE_LEDGER } from '../../rows/rowsForm.ts';
import type { LedgerRow, RuneRow } from '../../runes/ledgerRows.ts';
import { CsvFile } from '../csvFile.ts';
import type { Heights } from '../heightRange.ts';
import { type CsvRows, writeParquet } from '../parquetFile.ts';
import { checkDigest, ledgerFile, type PulledFile } from '../pulledFiles.ts';
import { putInPlace, removeWorkFiles, writeError } from '../writePulled.ts';
import { lost } from './checkFolder.ts';
import { RuneFiles } from './runeFiles.ts';

const LEDGER_COLUMNS = NODE_LEDGER.fields.map(({ column }) => column as keyof LedgerRow);

/** Maximum number of files that are being converted to Parquet or wait for it. With more, `endFile` waits. */
const MOST_WAITING = 3;

/** Converted file that was not moved to its path yet. */
interface Made extends Heights {
  readonly temporary: string;
  readonly rows: number;
  readonly bytes: number;
}

export class RowFiles {
  readonly #folder: string;
  readonly #store: Store;
  #ledger: CsvFile<keyof LedgerRow>;
  readonly #runes: RuneFiles;
  /** Conversions that have begun, in order. */
  #making: Promise<Made>[] = [];
  constructor(folder: string, limits: RuneFiles['limits'], store: Store) {
    this.#folder = folder;
    this.#store = store;
    this.#ledger = new CsvFile(this.#folder, LEDGER_COLUMNS);
    this.#runes = new RuneFiles(folder, limits, store, (rows) => this.#write(rows));
  }

  addRow(row: LedgerRow): void {
    this.#ledger.addLine(lineOf(row));
  }

  /** Makes the next `putInPlace` remove runes of blocks above the ledger's height. */
  expectOldRunes(): void {
    this.#runes.hasOld = true;
  }

  addRune(row: RuneRow): void {
    this.#runes.add(row);
  }

  /**
   * Begins to convert the rows that were added since the last call. Their file is named after `heights`, the blocks of
   * these rows. Waits if too many files are being converted.
   */
  async endFile(heights: Heights): Promise<void> {
    const ledger = this.#ledger;
    this.#ledger = new CsvFile(this.#folder, LEDGER_COLUMNS);
    const making = this.#write({ csv: ledger.end(), ...NODE_LEDGER }).then(async (temporary) => {
      ledger.drop();
      return { ...heights, temporary, rows: ledger.rows, bytes: (await stat(temporary)).size };
    });
    // A later `await` of this promise throws its error. Until then, the error must not count as an unhandled rejection.
    making.catch(() => undefined);
    this.#making.push(making);
    await this.#making.at(-MOST_WAITING);
  }

  /**
   * Moves all files to their paths. Adds the new runes to the table of runes, and removes runes of blocks above
   * `known`, which a killed pull or a reorganisation left behind. `settled` is a result of lastWhole() (runeFiles.ts).
   */
  async putInPlace(known: number, settled: number): Promise<readonly Made[]> {
    const made = await Promise.all(this.#making.splice(0));
    await this.#runes.putInPlace(known, settled);
    for (const { temporary, first, last } of made) await putInPlace(this.#folder, temporary, ledgerFile(first, last));
    this.#syncFolders(made);
    return made;
  }

  /** Drops all rows and runes that were not moved to their paths. */
  async discard(): Promise<void> {
    await Promise.allSettled(this.#making.splice(0));
    this.#ledger = new CsvFile(this.#folder, LEDGER_COLUMNS);
    this.#runes.discard();
    removeWorkFiles(this.#folder);
  }

  /** Joins files of ledger rows into one file of these blocks. Throws an InputError if a file is damaged. */
  async join(files: readonly PulledFile[], heights: Heights): Promise<void> {
    const paths = files.map(({ path }) => join(this.#folder, path));
    // Checks the parts, because the new checksum of the joined file would hide damage in them.
    for (const path of paths) await this.#check(path);
    const more = `FROM ${readFiles('parquet', paths)}`;
    const temporary = await this.#write({ csv: undefined, ...NODE_LEDGER, more });
    await putInPlace(this.#folder, temporary, ledgerFile(heights.first, heights.last));
    this.#syncFolders([heights]);
  }

  async #check(path: string): Promise<void> {
    try {
      await checkDigest(path);
    } catch (error) {
      throw codeOf(error) === undefined ? lost(`${path} cannot be read: ${messageOf(error)}`, this.#folder) : error;
    }
  }

  /**
   * Syncs the folders of the table of runes and of these files, before the ledger on disk claims that the files exist.
   */
  #syncFolders(files: readonly Heights[]): void {
    const folders = new Set(['.', ...files.map(({ first, last }) => dirname(ledgerFile(first, last)))]);
    for (const folder of folders) syncFolder(join(this.#folder, folder));
  }

  async #write(rows: CsvRows): Promise<string> {
    try {
      return await writeParquet(this.#folder, rows, this.#store);
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
