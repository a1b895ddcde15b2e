/**
 * Reads the files that a build needs: new and changed files, whose records are checked; then unchanged ledgers with a changed or added
 * rune; then unchanged files that share a block with these.
 */
import { basename } from 'node:path';
import { isIndexName } from '../contract/rowsSchemas.ts';
import { int } from '../duckdb/store.ts';
import { columns, type Table, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { exceeds } from '../limits.ts';
import { blocksSelect } from './canonicalRecordSql.ts';
import type { NumberedFile, Selection, UnchangedFile } from './changedFiles.ts';
import { inCanonicalForm, reportBadRecords } from './checkRecords.ts';
import type { InputFile } from './discover.ts';
import { Report } from './inputFindings.ts';
import { type JoinedRunes, joinRunes, ledgersToReadAgain, leftOutSelect } from './joinRunes.ts';
import { bytesOf, groupAlike, type RawSource, type Reading, type Runes } from './rawSource.ts';
import { readSource } from './readSource.ts';
import { isLedger, type Recognised, recognise } from './recognise.ts';

/** Columns of the table with the blocks of each input file. `records` is 0 if the runes of all rows of the block are unknown. */
export const HELD = columns('source INTEGER, block_height BIGINT, block_hash VARCHAR, records BIGINT');

/** Columns of the table that counts the ledger rows with an unknown rune. Builds omit these rows. */
export const LEFT_OUT = columns('source INTEGER, block_height BIGINT, rune_id VARCHAR, records BIGINT');

export class InputReader {
  readonly #forms: Map<number, string>;
  /** Files that this build has read, by file number. */
  readonly read = new Map<number, InputFile>();
  /** Names of all files by file number. */
  readonly names: ReadonlyMap<number, string>;
  readonly sources: RawSource[] = [];
  readonly #withoutRecords: string[] = [];
  /** Runes of all runes tables of the input. */
  runes: Runes;
  /** Result of joining all runes tables. Undefined if the runes in the state have not changed. */
  joined: JoinedRunes | undefined;

  private constructor(
    private readonly selection: Selection,
    readonly reading: Reading,
    /** Blocks of the files that this build has read. */
    readonly holds: Table<typeof HELD>,
    readonly leftOut: Table<typeof LEFT_OUT>,
  ) {
    const { touched, unchanged } = selection;
    this.#forms = new Map(unchanged.map(({ id, form }) => [id, form]));
    this.names = new Map([...unchanged, ...touched].map(({ id, file }) => [id, file.name]));
    this.runes = reading.known.runes;
  }

  static async begin(selection: Selection, reading: Reading): Promise<InputReader> {
    const { store } = reading;
    return new InputReader(selection, reading, await store.table('holds', HELD), await store.table('left_out', LEFT_OUT));
  }

  /** Names of all ledgers by file number, including ledgers that were not read. */
  get ledgers(): Map<number, string> {
    return new Map([...this.names].filter(([id]) => isLedger(this.formOf(id))));
  }

  get notices(): string[] {
    const [first, ...others] = this.#withoutRecords;
    if (first === undefined) return [];
    return [others.length === 0 ? `${first} has no records` : `${others.length + 1} files have no records, such as ${first}`];
  }

  /** Parquet files that this build uses. The store has only views of them, so rendering reads the files again. */
  get views(): InputFile[] {
    return this.sources.filter(({ isView }) => isView).flatMap(({ members }) => members.map(({ file }) => file));
  }

  formOf(id: number): string {
    return this.#forms.get(id) ?? '';
  }

  async readTouched(): Promise<void> {
    const { store, progress } = this.reading;
    const report = new Report();
    for (const [i, source] of (await this.#readAll(this.selection.touched)).entries()) {
      const canonical = source.isView ? await progress.scan(bytesOf(source.members), () => inCanonicalForm(source, store)) : undefined;
      if (canonical === undefined) await reportBadRecords(source, report, store);
      else this.sources[i] = canonical;
    }
    report.throwIfAny((count) => `the input has ${count} error(s); nothing was written`);
    await this.#updateRunes();
    await this.#listBlocks(this.sources);
  }

  /** Reads the unchanged files that have an affected block. */
  async readRelated(affected: TableWith<'block_height'>): Promise<void> {
    const related = await this.#holdersOf(affected);
    await this.#listBlocks(await this.#readAll(related.filter(({ id }) => !this.read.has(id))));
  }

  /** Reads the unchanged files that have any of `blocks`, even if they were read before. */
  async readAgain(blocks: TableWith<'block_height'>): Promise<RawSource[]> {
    return this.#readAll(await this.#holdersOf(blocks));
  }

  async #holdersOf(blocks: TableWith<'block_height'>): Promise<readonly UnchangedFile[]> {
    const { unchanged } = this.selection;
    if (unchanged.length === 0) return [];
    const { known, store } = this.reading;
    const rows = await store.rows(
      `SELECT DISTINCT source FROM ${known.held} WHERE block_height IN (SELECT block_height FROM ${blocks}) ORDER BY source`,
      { source: int },
    );
    const holders = new Set(rows.map((row) => row.source));
    return unchanged.filter(({ id }) => holders.has(id));
  }

  async #readAll(files: readonly NumberedFile[]): Promise<RawSource[]> {
    const { limits, scratch, store, progress } = this.reading;
    const recognised: Recognised[] = [];
    progress.expect(files.length);
    for (const { id, file } of files) {
      this.read.set(id, file);
      const found = await recognise({ id, file }, store, scratch);
      this.#forms.set(id, found.form);
      progress.found(found.form === 'no-records' ? 0 : found.bytes);
      if (found.form !== 'no-records') recognised.push(found);
      // An index of rows never has records.
      else if (!isIndexName(basename(file.path))) this.#withoutRecords.push(file.name);
    }
    if (exceeds(limits, 'keptInput', bytesOf(recognised))) await store.returnFreed();
    const sources: RawSource[] = [];
    for (const group of groupAlike(recognised)) sources.push(await readSource(group, this.reading));
    for (const source of sources) this.sources.push(source);
    return sources;
  }

  /** Adds the blocks of sources to `holds`. Adds counts of the ledgers' rows with unknown runes to `leftOut`. */
  async #listBlocks(sources: readonly RawSource[]): Promise<void> {
    const { range, store, progress } = this.reading;
    progress.finish();
    for (const source of sources.filter(({ form }) => form !== 'runes')) {
      // If no rune is missing, all rows count as records, and the query needs no condition.
      const lacks = isLedger(source.form)
        ? await store.count(`INSERT INTO ${this.leftOut} ${leftOutSelect(source, this.runes, range)}`)
        : 0;
      const isCounted = lacks > 0 ? `rune_id IN (SELECT id FROM ${this.runes})` : undefined;
      await store.run(`INSERT INTO ${this.holds} ${blocksSelect(source, range, isCounted)}`);
    }
  }

  /**
   * Joins all runes tables if one was read or removed. Then reads unchanged ledgers again whose records this changes. Throws an InputError
   * if there is a ledger but no runes table.
   */
  async #updateRunes(): Promise<void> {
    const { known, store } = this.reading;
    const read = this.sources.filter(({ form }) => form === 'runes');
    const unchanged = this.selection.unchanged.filter(({ form }) => form === 'runes');
    const [ledger] = this.ledgers.values();
    if (ledger !== undefined && read.length + unchanged.length === 0)
      throw new InputError(`${ledger} is a ledger export, but the input has no runes table`, [
        'A ledger has only the ids of runes. Put the export of the runes table (runes.csv or runes.parquet) beside it,',
        'or add it with another --input.',
      ]);
    if (read.length === 0 && !this.selection.gone.some(({ form }) => form === 'runes')) return;
    const kept = unchanged.map(({ id }) => id);
    this.joined = await joinRunes({ read, kept, readKept: () => this.#readAll(unchanged), names: this.names }, known.runes, store);
    this.runes = this.joined.all;
    const again = await ledgersToReadAgain(this.joined, known, store);
    await this.#readAll(this.selection.unchanged.filter(({ id, form }) => isLedger(form) && (again === 'all' || again.has(id))));
  }
}
