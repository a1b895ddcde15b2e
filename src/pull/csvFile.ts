/** Writes rows to a temporary CSV file, which writeParquet() reads. */
import { appendFileSync, rmSync } from 'node:fs';
import { workFile } from './writePulled.ts';

/** Number of bytes that are collected in memory before they are appended to the file. */
const CHUNK = 1 << 18;

/** Maximum number of bytes of a character (UTF-16 unit) in UTF-8. */
const CHARACTER_BYTES = 3;

export type Cell = string | number | bigint | boolean | null;

export class CsvFile<Column extends string> {
  readonly #path: string;
  readonly #pending = Buffer.allocUnsafe(CHUNK);
  #length = 0;
  rows = 0;

  /** `folder` is the path of the folder `pulled`. */
  constructor(
    folder: string,
    private readonly columns: readonly Column[],
  ) {
    this.#path = workFile(folder, '.csv');
  }

  /** Adds a row. Throws system errors. */
  add(row: Readonly<Record<Column, Cell>>): void {
    this.addLine(this.columns.map((column) => cellText(row[column])).join(','));
  }

  /** Adds a row whose cells the caller has joined. Throws system errors. */
  addLine(line: string): void {
    const text = `${line}\n`;
    const most = CHARACTER_BYTES * text.length;
    if (this.#length + most > CHUNK) this.#flush();
    if (most > CHUNK) appendFileSync(this.#path, text);
    else this.#length += this.#pending.write(text, this.#length);
    this.rows++;
  }

  /** Adds rows that the caller has rendered as UTF-8, each with a line feed at its end. Throws system errors. */
  addRows(csv: Uint8Array, rows: number): void {
    this.#flush();
    appendFileSync(this.#path, csv);
    this.rows += rows;
  }

  /** Writes the remaining rows. Returns the path of the file, undefined if there are no rows. */
  end(): string | undefined {
    this.#flush();
    return this.rows === 0 ? undefined : this.#path;
  }

  drop(): void {
    rmSync(this.#path, { force: true });
  }

  #flush(): void {
    if (this.#length === 0) return;
    appendFileSync(this.#path, this.#pending.subarray(0, this.#length));
    this.#length = 0;
  }
}

const cellText = (value: Cell): string =>
  value === null ? '' : typeof value === 'string' && !/^[0-9A-Za-z:]+$/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
