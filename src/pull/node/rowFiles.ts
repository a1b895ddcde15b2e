/**
 * Writes the rows of a node's blocks to the folder `pulled`: files of ledger rows, and of runes. They count once the index names them.
 * Equal rows always give equal bytes, so unchanged files are recognised.
 */
import { rmSync } from 'node:fs';
import type { Kind, RowFile } from '../../contract/rowsSchemas.ts';
import { LineFile } from '../../disk/lineFile.ts';
import { type BlockRange, isWithin } from '../../duckdb/blockRanges.ts';
import { firstLineOf, isDiskFailure, isDiskFull } from '../../duckdb/duckdbErrors.ts';
import { readCsv } from '../../duckdb/readFilesSql.ts';
import { int, type Store } from '../../duckdb/store.ts';
import { columnsOf } from '../../duckdb/table.ts';
import { CliError } from '../../errors.ts';
import { groupBy } from '../../groupBy.ts';
import { moveIn } from '../../rows/rowsFolder.ts';
import { copyTable, entriesOf, type FileOfRows, HEIGHTS_PER_FILE, hundredOf, NODE_LEDGER, RUNES } from '../../rows/rowsForm.ts';
import type { LedgerRow, RuneRow } from '../../runes/ledgerRows.ts';
import { removeWorkFiles, workFile, writeError } from '../pulledFiles.ts';
import { rowsIn } from './replayRows.ts';

const FORMS = { files: NODE_LEDGER, runes: RUNES } as const;
const RUNE_COLUMNS = RUNES.fields.map(({ column }) => column as keyof RuneRow);

/** Number of files that are converted to Parquet at once. If more wait, `endFile` waits. */
const AT_ONCE = 32;

export type Made = readonly [kind: Kind, file: RowFile];

/** Rows that become a file of these blocks: SQL and, for new rows, the CSV file that it reads. */
interface Waiting extends BlockRange {
  readonly kind: Kind;
  readonly rows: string;
  readonly csv?: LineFile;
}

export class RowFiles {
  /** Temporary CSV files in PostgreSQL's format: no header, and NULL is an empty field without quotes. */
  #open: Readonly<Record<Kind, LineFile>>;
  #waiting: Waiting[] = [];
  #made: Made[] = [];
  /** Resolves when no file waits. Files are converted while the pull reads on, in order. */
  #converting: Promise<void> | undefined;

  constructor(
    private readonly folder: string,
    private readonly store: Store,
  ) {
    this.#open = this.#csvFiles();
  }

  addRow(row: LedgerRow): void {
    this.#open.files.add(lineOf(row));
  }

  addRune(row: RuneRow): void {
    this.#open.runes.add(RUNE_COLUMNS.map((column) => cellOf(row[column])).join(','));
  }

  /** Begins to convert the runes of these blocks, and their rows from `rowsFrom` on. Waits if too many files are being converted. */
  async endFile({ first, last }: BlockRange, rowsFrom: number): Promise<void> {
    for (const [kind, from] of [['files', Math.max(first, rowsFrom)] as const, ['runes', first] as const]) {
      const csv = this.#open[kind];
      if (csv.count > 0) this.#waiting.push({ kind, rows: rowsOf(csv, kind), first: from, last, csv });
    }
    this.#open = this.#csvFiles();
    if (this.#waiting.length > 0) this.#converting ??= this.#convert();
    // A later `await` of this promise throws its error. Until then, the error must not count as an unhandled rejection.
    this.#converting?.catch(() => undefined);
    if (this.#waiting.length > AT_ONCE) await this.#converting;
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
    const waiting = this.#waiting.splice(0);
    await this.#converting?.catch(() => undefined);
    [this.#converting, this.#made] = [undefined, []];
    for (const csv of [...Object.values(this.#open), ...waiting.map((file) => file.csv)]) csv?.close();
    this.#open = this.#csvFiles();
    removeWorkFiles(this.folder);
  }

  /** Joins files into one file of the blocks of each group. Throws an InputError for a damaged file: the new one would hide it. */
  async join(kind: Kind, groups: readonly (BlockRange & { readonly files: readonly RowFile[] })[]): Promise<RowFile[]> {
    const joined: Waiting[] = [];
    for (const { files, first, last } of groups) joined.push({ kind, rows: await rowsIn(this.folder, kind, files), first, last });
    return (await this.#write(joined)).map(([, file]) => file);
  }

  /** Writes files of runes again, with a file for each hundred blocks. Throws an InputError if a file is damaged. */
  async divideRunes(files: readonly RowFile[]): Promise<RowFile[]> {
    const runes = `(SELECT DISTINCT * FROM ${await rowsIn(this.folder, 'runes', files)})`;
    const hundreds = `SELECT DISTINCT block_height - block_height % ${HEIGHTS_PER_FILE} AS first FROM ${runes} ORDER BY first`;
    const firsts = await this.store.rows(hundreds, { first: int });
    const divided = firsts.map(
      ({ first }) => ({ kind: 'runes', rows: `(FROM ${runes} WHERE ${isWithin(hundredOf(first))})`, ...hundredOf(first) }) as const,
    );
    return (await this.#write(divided)).map(([, file]) => file);
  }

  #csvFiles(): Readonly<Record<Kind, LineFile>> {
    return { files: new LineFile(workFile(this.folder, '.csv')), runes: new LineFile(workFile(this.folder, '.csv')) };
  }

  async #write(files: readonly Waiting[]): Promise<Made[]> {
    const { folder, store } = this;
    try {
      const written: (FileOfRows & Pick<Waiting, 'kind'>)[] = [];
      for (const { kind, rows, first, last, csv } of files) {
        csv?.end();
        const path = workFile(folder, '.parquet');
        await store.run(copyTable(`FROM ${rows}`, FORMS[kind].order, path));
        written.push({ kind, path, first, last });
      }
      const made: Made[] = [];
      for (const [kind, some] of groupBy(written, (file) => file.kind))
        for (const [i, entry] of (await entriesOf(some, FORMS[kind], store)).entries()) {
          const path = some[i]?.path ?? '';
          if (typeof entry === 'string') throw new Error(`${path}: ${entry}`);
          await moveIn(folder, path, kind, entry);
          made.push([kind, entry]);
        }
      return made;
    } catch (error) {
      if (error instanceof CliError && !isDiskFull(error) && !isDiskFailure(error)) throw error;
      throw writeError(folder, new Error(firstLineOf(error)));
    }
  }
}

function rowsOf({ file }: LineFile, kind: Kind): string {
  const { fields } = FORMS[kind];
  const typed = Object.entries(columnsOf(fields)).map(([name, type]) => `"${name}"::${type} AS "${name}"`);
  const names = fields.map(({ column }) => column);
  return `(SELECT ${typed.join(', ')} FROM ${readCsv([file], names, '\\n', ['header = false'])})`;
}

/** Names each column of NODE_LEDGER, because a loop takes several times as long. Only the cell `spent` has characters that need quotes. */
const lineOf = (row: LedgerRow): string =>
  `${row.rune_id},${row.block_hash},${row.block_height},${row.tx_index},${row.event_index},${row.tx_id},${row.output ?? ''},${row.address ?? ''},${row.receiver_address ?? ''},${row.amount ?? ''},${row.operation},${row.timestamp},${row.spent === null ? '' : `"${row.spent}"`}`;

const cellOf = (value: RuneRow[keyof RuneRow]): string =>
  value === null ? '' : typeof value === 'string' && !/^[0-9A-Za-z:]+$/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
