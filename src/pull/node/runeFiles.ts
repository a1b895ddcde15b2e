/**
 * Writes the runes of a node's blocks to the folder `pulled`. If settled blocks have more than `runesTogether` runes,
 * RUNES_FILE has these runes, and NEWEST_RUNES_FILE has the others. So a new block does not write all runes again, and
 * a build does not read all runes again. If settled blocks have fewer runes, RUNES_FILE has all runes.
 *
 * Which file has a rune depends only on the blocks. So pulls of the same blocks write the same files, however often
 * they were stopped. NEWEST_RUNES_FILE exists if and only if RUNES_FILE has more than `runesTogether` runes, so a pull
 * notices if NEWEST_RUNES_FILE is lost.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { flag, int, type Store } from '../../duckdb/store.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';
import { hundredOf, RUNES } from '../../rows/rowsForm.ts';
import type { RuneRow } from '../../runes/ledgerRows.ts';
import { CsvFile } from '../csvFile.ts';
import type { CsvRows } from '../parquetFile.ts';
import { NEWEST_RUNES_FILE, RUNES_FILE, readRunes } from '../pulledFiles.ts';
import { putInPlace, removeFiles } from '../writePulled.ts';
import { lost } from './checkFolder.ts';

const COLUMNS = RUNES.fields.map(({ column }) => column as keyof RuneRow);

/** Number of runes with one combination of the three properties. `isNewest`: the runes are in NEWEST_RUNES_FILE. */
interface RuneCount {
  readonly isNewest: boolean;
  /** True for runes of blocks up to the ledger's height. Other runes are removed from the files. */
  readonly isValid: boolean;
  readonly isSettled: boolean;
  readonly runes: number;
}

/** Throws an InputError if the folder lost NEWEST_RUNES_FILE. `runes` is the number of runes that were found. */
export function checkNewestRunes(runes: number, folder: string, { runesTogether }: Pick<WorkLimits, 'runesTogether'>): void {
  const path = join(folder, NEWEST_RUNES_FILE);
  if (runes > runesTogether && !existsSync(path)) throw lost(`${path} is missing`, folder);
}

/** Returns the last block of the newest completely settled hundred of blocks. `settled` is the last settled block. */
export const lastWhole = (settled: number): number => hundredOf(settled + 1).first - 1;

export class RuneFiles {
  #added: CsvFile<keyof RuneRow>;
  #heights: number[] = [];
  /** Argument `settled` of the last call of `putInPlace`. */
  #settled: number | undefined;
  /** True if the files may have runes of blocks above the ledger's height. The next `putInPlace` removes them. */
  hasOld = false;

  constructor(
    private readonly folder: string,
    readonly limits: Pick<WorkLimits, 'runesTogether'>,
    private readonly store: Store,
    /** Writes a temporary Parquet file, and returns its path. */
    private readonly write: (rows: CsvRows) => Promise<string>,
  ) {
    this.#added = new CsvFile(folder, COLUMNS);
  }

  add(row: RuneRow): void {
    this.#added.add(row);
    this.#heights.push(row.block_height);
  }

  /** Drops all runes that were added since the last call of `putInPlace`. */
  discard(): void {
    this.#begin();
    // The failed commit may already have written the runes.
    this.hasOld = true;
  }

  #begin(): void {
    [this.#added, this.#heights] = [new CsvFile(this.folder, COLUMNS), []];
  }

  /**
   * Adds the new runes, and removes runes of blocks above `known`. If there are many runes, moves runes of blocks up to
   * `settled` from NEWEST_RUNES_FILE to RUNES_FILE. Throws system errors and the errors of DuckDB.
   */
  async putInPlace(known: number, settled: number): Promise<void> {
    const [added, heights] = [this.#added, this.#heights];
    const [isOld, hasNewest] = [RUNES_FILE, NEWEST_RUNES_FILE].map((name) => existsSync(join(this.folder, name)));
    if (isOld && heights.length === 0 && !this.hasOld && settled === this.#settled) return;
    const before = isOld ? await this.#count(known, settled) : [];
    const count = (is: (runes: RuneCount) => boolean) => before.filter(is).reduce((sum, { runes }) => sum + runes, 0);
    const addedSettled = heights.filter((height) => height <= settled).length;
    const isApart = exceeds(this.limits, 'runesTogether', count((one) => one.isValid && one.isSettled) + addedSettled);
    const isBelow = ({ isSettled }: RuneCount) => !isApart || isSettled;
    const addedBelow = isApart ? addedSettled : heights.length;
    const isMany = count((one) => one.isValid && isBelow(one)) + addedBelow > this.limits.runesTogether;
    const end = isApart ? settled : Number.MAX_SAFE_INTEGER;
    const csv = added.end();
    const more = isOld ? `FROM (${readRunes(this.folder)}) WHERE block_height <= ${known}` : undefined;
    const put = async (name: string, where: string) => putInPlace(this.folder, await this.write({ csv, ...RUNES, more, where }), name);

    const leaving = count((one) => !one.isNewest && one.isValid && !isBelow(one));
    const isNewestSame =
      hasNewest && leaving === 0 && addedBelow === heights.length && count((one) => one.isNewest && !(one.isValid && !isBelow(one))) === 0;
    const isTableSame = isOld && addedBelow === 0 && count((one) => (one.isValid && isBelow(one)) === one.isNewest) === 0;
    const steps = [
      async () => {
        if (!isTableSame) await put(RUNES_FILE, `block_height <= ${end}`);
      },
      async () => {
        if (!isMany) removeFiles(this.folder, [{ path: NEWEST_RUNES_FILE }]);
        else if (!isNewestSame) await put(NEWEST_RUNES_FILE, `block_height > ${end}`);
      },
    ];
    // In this order, no rune is lost if the pull is killed between the steps: a rune that moves is added to its new
    // file before it is removed from its old file. If NEWEST_RUNES_FILE does not exist yet, it is written first,
    // because a folder with many runes must never lack it.
    for (const step of leaving > 0 || !hasNewest ? steps.reverse() : steps) await step();
    this.#begin();
    [this.hasOld, this.#settled] = [false, settled];
    added.drop();
  }

  async #count(known: number, settled: number): Promise<RuneCount[]> {
    const [table, newest] = [RUNES_FILE, NEWEST_RUNES_FILE].map((name) => join(this.folder, name));
    const from = (path = '') => `FROM ${readFiles('parquet', [path])}`;
    const others = existsSync(newest ?? '') ? `UNION ALL SELECT block_height, true ${from(newest)}` : '';
    return this.store.rows(
      `SELECT is_newest AS "isNewest", block_height <= ${known} AS "isValid", block_height <= ${settled} AS "isSettled", count(*) AS runes
       FROM (SELECT block_height, false AS is_newest ${from(table)} ${others}) GROUP BY ALL`,
      { isNewest: flag, isValid: flag, isSettled: flag, runes: int },
    );
  }
}
