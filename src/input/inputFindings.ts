/** Collects findings about the input. Reports the first findings and the number of the others. */
import { int, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';

/** Maximum number of findings that a report shows. */
const REPORT_LIMIT = 20;

const VALUE_LENGTH = 60;

/** Formats a value for a message: JSON, cut after 60 characters. */
export function shorten(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > VALUE_LENGTH ? `${text.slice(0, VALUE_LENGTH)}… (${text.length} characters)` : text;
}

/** Creates a table with the names of files, from which SQL makes messages. */
export const namesTable = (names: Iterable<readonly [id: number, name: string]>, store: Store) =>
  store.append('file_names', columns('source INTEGER, name VARCHAR'), names);

export class Report {
  readonly #lines: string[] = [];
  #count = 0;

  get room(): number {
    return Math.max(0, REPORT_LIMIT - this.#lines.length);
  }

  /** Adds findings. `count` is their total number when `lines` has only the first of them. */
  add(lines: readonly string[], count = lines.length): void {
    for (const line of lines.slice(0, this.room)) this.#lines.push(line);
    this.#count += count;
  }

  /**
   * Adds the findings of a query: the texts in its column `line`, sorted by the column `place`, a list of numbers. `shown` is the SQL of
   * the line to show, for what takes long to compute.
   */
  async addFound(found: string, store: Store, shown = 'line'): Promise<void> {
    const order = 'ORDER BY place, length(line), line';
    const rows = await store.rows(
      `SELECT ${shown} AS shown, "all" FROM (SELECT *, count(*) OVER () AS "all" FROM (${found}) ${order} LIMIT ${Math.max(this.room, 1)}) ${order}`,
      { shown: text, all: int },
    );
    const lines = rows.map((row) => row.shown);
    this.add(lines, rows[0]?.all ?? 0);
  }

  /** Throws an InputError with the findings as its details, if there are any. */
  throwIfAny(summary: (count: number) => string): void {
    if (this.#count === 0) return;
    const rest = this.#count - this.#lines.length;
    const details = rest > 0 ? [...this.#lines, `… and ${rest} more`] : this.#lines;
    throw new InputError(summary(this.#count), details);
  }
}
