/** Writes rows to a temporary CSV file, which writeParquet() reads. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';

/** Characters that are written at once. */
const CHUNK = 1 << 20;

/** A value of a row. */
type Cell = string | number | bigint | boolean | null;

export class CsvFile<Row extends Readonly<Record<Column, Cell>>, Column extends keyof Row & string> {
  readonly path: string;
  readonly #columns: readonly Column[];
  #file: number | undefined;
  #pending = '';
  rows = 0;

  constructor(path: string, columns: readonly Column[]) {
    this.path = path;
    this.#columns = columns;
  }

  /** Throws system errors. */
  add(row: Row): void {
    this.#pending += `${this.#columns.map((column) => cellText(row[column])).join(',')}\n`;
    this.rows++;
    if (this.#pending.length > CHUNK) this.#flush();
  }

  /** Writes the rest and closes the file. Returns its path, undefined when there was no row. */
  end(): string | undefined {
    try {
      this.#flush();
      return this.#file === undefined ? undefined : this.path;
    } finally {
      this.#close();
    }
  }

  /** Closes and removes the file. */
  drop(): void {
    this.#close();
    rmSync(this.path, { force: true });
  }

  #close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #flush(): void {
    if (this.#pending === '') return;
    this.#file ??= openSync(this.path, 'w');
    // Unlike writeSync, it goes on after a short write.
    writeFileSync(this.#file, this.#pending);
    this.#pending = '';
  }
}

const cellText = (value: Cell): string =>
  value === null ? '' : typeof value === 'string' && !/^[0-9A-Za-z:]+$/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
