/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and the table of runes. Temporary
 * files are put in place together, the runes first, so that a build finds the runes of all rows.
 */
import { existsSync, rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { NODE_LEDGER_FIELDS, RUNE_DETAILS, RUNE_FIELDS } from '../../contract/fields.ts';
import { CliError, codeOf, messageOf } from '../../errors.ts';
import type { LedgerRow, RuneRow } from '../../runes/rows.ts';
import type { Store } from '../../store/duckdb.ts';
import { isDiskFull } from '../../store/failures.ts';
import { readFiles } from '../../store/files.ts';
import { syncFolder } from '../../write/sync.ts';
import type { Heights } from '../heights.ts';
import { writeParquet } from '../parquetFile.ts';
import { checkDigest, ledgerFile, type PulledFile, RUNES_FILE } from '../pulledFiles.ts';
import { putInPlace, workFile, writeError } from '../write.ts';
import { CsvFile } from './csvFile.ts';
import { lost } from './folderChecks.ts';

const LEDGER_COLUMNS = NODE_LEDGER_FIELDS.map(({ column }) => column as keyof LedgerRow);
const ALL_RUNE_FIELDS = [...RUNE_FIELDS, ...RUNE_DETAILS];
const RUNE_COLUMNS = ALL_RUNE_FIELDS.map(({ column }) => column as keyof RuneRow);

/** The order of rows in files, as in the files of other sources: transactions and events from last to first. */
const ROW_ORDER = 'block_height, tx_index DESC, event_index DESC';

/** Most files that are converted or wait for it. */
const MOST_WAITING = 3;

/** A file that waits to be put in place. */
interface Made extends Heights {
  readonly temporary: string;
  readonly rows: number;
  readonly bytes: number;
}

export class RowFiles {
  readonly #folder: string;
  readonly #store: Store;
  #ledger: CsvFile<LedgerRow, keyof LedgerRow> | undefined;
  #runes: CsvFile<RuneRow, keyof RuneRow> | undefined;
  /** Conversions that have begun, in order. */
  #making: Promise<Made>[] = [];
  /** True when the table of runes may have runes of blocks above the ledger. */
  #hasOldRunes = false;
  /** Temporary files. */
  readonly #unplaced = new Set<string>();

  constructor(folder: string, store: Store) {
    this.#folder = folder;
    this.#store = store;
  }

  addRow(row: LedgerRow): void {
    this.#ledger ??= new CsvFile(this.#temporary('.csv'), LEDGER_COLUMNS);
    this.#ledger.add(row);
  }

  addRune(row: RuneRow): void {
    this.#runes ??= new CsvFile(this.#temporary('.csv'), RUNE_COLUMNS);
    this.#runes.add(row);
  }

  /** Makes a file of the rows that were added since the last call. `heights` are their blocks. */
  async endFile(heights: Heights): Promise<void> {
    const ledger = this.#ledger;
    this.#ledger = undefined;
    const csv = ledger?.end();
    const temporary = this.#temporary('.parquet');
    const making = this.#write(temporary, { csv, fields: NODE_LEDGER_FIELDS, order: ROW_ORDER }).then(async () => {
      this.#drop(csv);
      return { ...heights, temporary, rows: ledger?.rows ?? 0, bytes: (await stat(temporary)).size };
    });
    // The error is thrown at its turn. Until then it must not count as unhandled.
    making.catch(() => undefined);
    this.#making.push(making);
    await this.#making.at(-MOST_WAITING);
  }

  /**
   * Puts all files in place. The table of runes gets the runes that were added, and loses those of blocks above
   * `known` that a killed pull or a reorganisation left.
   */
  async putInPlace(known: number): Promise<readonly Made[]> {
    const made = await Promise.all(this.#making.splice(0));
    await this.#putRunes(known);
    const paths = made.map(({ first, last }) => ledgerFile(first, last));
    for (const [i, { temporary }] of made.entries()) await this.#place(temporary, paths[i] ?? '');
    this.#syncFolders(paths);
    return made;
  }

  /** Forgets all rows and runes that are not in place. */
  async discard(): Promise<void> {
    await Promise.allSettled(this.#making.splice(0));
    this.#ledger?.drop();
    this.#runes?.drop();
    this.#ledger = undefined;
    this.#runes = undefined;
    for (const path of this.#unplaced) this.#drop(path);
    // Runes may be in place already.
    this.#hasOldRunes = true;
  }

  /** Says that the table of runes may have runes of blocks above the ledger. The next `putInPlace` removes them. */
  expectOldRunes(): void {
    this.#hasOldRunes = true;
  }

  /** Removes the runes of blocks above `known` from the table, if there may be any. */
  async dropOldRunes(known: number): Promise<void> {
    if (this.#hasOldRunes) await this.putInPlace(known);
  }

  /** Joins files of ledger rows to one file of these blocks. Throws an InputError when a file was damaged. */
  async join(files: readonly PulledFile[], { first, last }: Heights): Promise<void> {
    const paths = files.map(({ path }) => join(this.#folder, path));
    // The joined file gets a checksum of its own, which would hide the damage.
    for (const path of paths) await this.#check(path);
    const temporary = this.#temporary('.parquet');
    const more = `FROM ${readFiles('parquet', paths)}`;
    await this.#write(temporary, { csv: undefined, fields: NODE_LEDGER_FIELDS, order: ROW_ORDER, more });
    await this.#place(temporary, ledgerFile(first, last));
    this.#syncFolders([ledgerFile(first, last)]);
  }

  async #check(path: string): Promise<void> {
    try {
      await checkDigest(path);
    } catch (error) {
      throw codeOf(error) === undefined ? lost(`${path} cannot be read: ${messageOf(error)}`, this.#folder) : error;
    }
  }

  #temporary(ending: string): string {
    const path = workFile(this.#folder, ending);
    this.#unplaced.add(path);
    return path;
  }

  async #place(temporary: string, path: string): Promise<void> {
    await putInPlace(this.#folder, temporary, path);
    this.#unplaced.delete(temporary);
  }

  #drop(temporary: string | undefined): void {
    if (temporary === undefined) return;
    rmSync(temporary, { force: true });
    this.#unplaced.delete(temporary);
  }

  /** Syncs the folders of these files, before the ledger relies on the files. */
  #syncFolders(paths: readonly string[]): void {
    const folders = new Set(['.', ...paths.map((path) => dirname(path))]);
    for (const folder of folders) syncFolder(join(this.#folder, folder));
  }

  async #putRunes(known: number): Promise<void> {
    const runes = this.#runes;
    const path = join(this.#folder, RUNES_FILE);
    if (runes === undefined && !this.#hasOldRunes && existsSync(path)) return;
    this.#runes = undefined;
    const csv = runes?.end();
    const temporary = this.#temporary('.parquet');
    const more = existsSync(path) ? `FROM ${readFiles('parquet', [path])} WHERE block_height <= ${known}` : undefined;
    await this.#write(temporary, { csv, fields: ALL_RUNE_FIELDS, order: 'number', more });
    await this.#place(temporary, RUNES_FILE);
    this.#hasOldRunes = false;
    this.#drop(csv);
  }

  async #write(path: string, rows: Parameters<typeof writeParquet>[1]): Promise<void> {
    try {
      await writeParquet(path, rows, this.#store);
    } catch (error) {
      if (error instanceof CliError && !isDiskFull(error)) throw error;
      throw writeError(this.#folder, new Error(messageOf(error).split('\n')[0]));
    }
  }
}
