/**
 * Writes the files of a start (startFrom.ts) to the folder `pulled/start`: the unspent outputs, and the mints and burns
 * of each rune. Builds read these files instead of the rows of older blocks (input/readStart.ts).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Field, START_OUTPUT_FIELDS, START_RUNE_FIELDS } from '../../contract/fields.ts';
import { syncFolder } from '../../disk/sync.ts';
import type { Store } from '../../duckdb/store.ts';
import { type Cell, CsvFile } from '../csvFile.ts';
import { writeParquet } from '../parquetFile.ts';
import { putInPlace } from '../writePulled.ts';

type Row<Fields extends readonly Field[]> = Readonly<Record<Fields[number]['column'], Cell>>;

export class StartFiles {
  readonly #folder: string;
  readonly #store: Store;
  readonly #outputs: CsvFile<(typeof START_OUTPUT_FIELDS)[number]['column']>;
  readonly #runes: CsvFile<(typeof START_RUNE_FIELDS)[number]['column']>;

  /** `folder` is the path of the folder `pulled`. */
  constructor(folder: string, store: Store) {
    this.#folder = folder;
    this.#store = store;
    this.#outputs = new CsvFile(
      folder,
      START_OUTPUT_FIELDS.map(({ column }) => column),
    );
    this.#runes = new CsvFile(
      folder,
      START_RUNE_FIELDS.map(({ column }) => column),
    );
  }

  /** Adds rows of outputs as CSV. A row has the amount of one rune. */
  addOutputs(csv: Uint8Array, rows: number): void {
    this.#outputs.addRows(csv, rows);
  }

  addRune(row: Row<typeof START_RUNE_FIELDS>): void {
    this.#runes.add(row);
  }

  /**
   * Converts all rows to Parquet files, and moves these to their paths. Replaces files of an earlier pull that was
   * killed at this step.
   */
  async putInPlace(): Promise<void> {
    rmSync(join(this.#folder, 'start'), { recursive: true, force: true });
    const files = [
      ['start/outputs.parquet', this.#outputs, START_OUTPUT_FIELDS, ['outpoint', 'rune_id']],
      ['start/runes.parquet', this.#runes, START_RUNE_FIELDS, ['rune_id']],
    ] as const;
    for (const [path, csv, fields, order] of files) {
      const temporary = await writeParquet(this.#folder, { csv: csv.end(), fields, order }, this.#store);
      csv.drop();
      await putInPlace(this.#folder, temporary, path);
    }
    for (const folder of ['start', '.']) syncFolder(join(this.#folder, folder));
  }
}
