/**
 * Reads the files that a build needs, in three steps: 1. new and changed files, whose records are checked; 2. unchanged
 * ledgers with a rune that was changed or added in the runes table; 3. unchanged files that share a block with a file
 * from steps 1 and 2.
 */
import { basename, join } from 'node:path';
import { isIndexName } from '../contract/rowsSchemas.ts';
import { int } from '../duckdb/store.ts';
import { columns, type Table, type TableWith } from '../duckdb/table.ts';
import { exceeds } from '../limits.ts';
import { reportBadRecords } from './badRecords.ts';
import { isInCanonicalForm, withCanonicalCells } from './canonicalForm.ts';
import { blocksSelect } from './canonicalRecordSql.ts';
import type { NumberedFile, UnchangedFile } from './changedFiles.ts';
import type { InputFile } from './discover.ts';
import { Report } from './inputFindings.ts';
import { type JoinedRunes, ledgersToReadAgain, leftOutSelect, loadRunes } from './joinRunes.ts';
import { bytesOf, groupAlike, type Numbered, type RawSource, type Reading } from './rawSource.ts';
import { readSource } from './readSource.ts';
import { isLedger, recognise } from './recognise.ts';
import type { Runes } from './runesTable.ts';

/**
 * Columns of the table with the blocks of each input file. `records` is the number of the block's records in the file.
 * It is 0 if the runes of all rows of the block are unknown.
 */
export const HELD = columns('source INTEGER, block_height BIGINT, block_hash VARCHAR, records BIGINT');

/**
 * Columns of the table that counts the ledger rows with an unknown rune, by file, block and rune. Builds omit these
 * rows.
 */
export const LEFT_OUT = columns('source INTEGER, block_height BIGINT, rune_id VARCHAR, records BIGINT');

export class InputReader {
  readonly #forms: Map<number, string>;
  /** Files that this build has read, by file number. */
  readonly read = new Map<number, InputFile>();
  /** File names by file number. */
  readonly names: Map<number, string>;
  readonly sources: RawSource[] = [];
  readonly #withoutRecords: string[] = [];
  /** Runes of all runes tables of the input. Undefined unless a ledger or a runes table was read. */
  runes: Runes | undefined;
  /**
   * Result of joining all runes tables (joinRunes.ts). Undefined if this build read no runes table and none was
   * removed: then the build uses the runes in the state.
   */
  joined: JoinedRunes | undefined;

  private constructor(
    private readonly unchanged: readonly UnchangedFile[],
    readonly reading: Reading,
    /** Blocks of the files that this build has read. */
    readonly holds: Table<typeof HELD>,
    readonly leftOut: Table<typeof LEFT_OUT>,
  ) {
    this.#forms = new Map(unchanged.map(({ id, form }) => [id, form]));
    this.names = new Map(unchanged.map(({ id, file }) => [id, file.name]));
  }

  static async begin(unchanged: readonly UnchangedFile[], reading: Reading): Promise<InputReader> {
    const { store } = reading;
    return new InputReader(unchanged, reading, await store.table('holds', HELD), await store.table('left_out', LEFT_OUT));
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

  /** Reads and checks new and changed files. Then reads unchanged ledgers again if their runes changed. */
  async readTouched(files: readonly NumberedFile[]): Promise<void> {
    const { store, progress } = this.reading;
    for (const { id, file } of files) this.names.set(id, file.name);
    const sources = await this.#readAll(files);
    const report = new Report();
    for (const source of sources) {
      const check = () => isInCanonicalForm(source, store);
      if (source.isView && (await progress.scan(bytesOf(source.members), check))) {
        this.sources[this.sources.indexOf(source)] = withCanonicalCells(source);
      } else await reportBadRecords(source, report, store);
    }
    report.throwIfAny((count) => `the input has ${count} error(s); nothing was written`);
    const forms = files.map(({ id }) => this.formOf(id));
    const needsRunes = forms.includes('runes') || forms.some(isLedger) || (await this.#lostRunes());
    if (needsRunes) await this.#updateRunes();
    progress.finish();
    for (const source of this.sources) await this.#listBlocks(source);
  }

  /** Reads the unchanged files that have an affected block. */
  async readRelated(affected: TableWith<'block_height'>): Promise<void> {
    if (this.unchanged.length === 0) return;
    const { progress } = this.reading;
    const related = await this.#holdersOf(affected);
    const sources = await this.#readAll(related.filter(({ id }) => !this.read.has(id)));
    if (this.runes === undefined && sources.some(({ form }) => isLedger(form))) await this.#updateRunes();
    progress.finish();
    for (const source of sources) await this.#listBlocks(source);
  }

  /** Reads the unchanged files that have any of `blocks`, even if they were read before. */
  async readAgain(blocks: TableWith<'block_height'>): Promise<RawSource[]> {
    return this.#readAll(await this.#holdersOf(blocks));
  }

  async #holdersOf(blocks: TableWith<'block_height'>): Promise<UnchangedFile[]> {
    const { known, store } = this.reading;
    const rows = await store.rows(
      `SELECT DISTINCT source FROM ${known.held} WHERE block_height IN (SELECT block_height FROM ${blocks}) ORDER BY source`,
      { source: int },
    );
    const holders = new Set(rows.map((row) => row.source));
    return this.unchanged.filter(({ id }) => holders.has(id));
  }

  async #readAll(files: readonly NumberedFile[]): Promise<RawSource[]> {
    const { limits, scratch, store, progress } = this.reading;
    const recognised: Numbered[] = [];
    progress.expect(files.length);
    for (const { id, file } of files) {
      this.read.set(id, file);
      const found = await recognise(file, store, join(scratch, `${id}.plain`));
      this.#forms.set(id, found.form);
      progress.found(found.form === 'no-records' ? 0 : found.bytes);
      if (found.form !== 'no-records') recognised.push({ ...found, id });
      // An index of rows never has records, so it is not reported as a file without records.
      else if (!isIndexName(basename(file.path))) this.#withoutRecords.push(file.name);
    }
    if (exceeds(limits, 'keptInput', bytesOf(recognised))) await store.returnFreed();
    const sources: RawSource[] = [];
    for (const group of groupAlike(recognised)) sources.push(await readSource(group, this.reading));
    for (const source of sources) this.sources.push(source);
    return sources;
  }

  /** Adds the blocks of a source to `holds`. Adds counts of a ledger's rows with unknown runes to `leftOut`. */
  async #listBlocks(source: RawSource): Promise<void> {
    if (source.form === 'runes') return;
    const { range, store } = this.reading;
    let isCounted: string | undefined;
    if (this.runes !== undefined && isLedger(source.form)) {
      await store.run(`INSERT INTO ${this.leftOut} ${leftOutSelect(source, this.runes, range)}`);
      const lacks = await store.number(
        `SELECT count(*) AS number FROM ${this.leftOut} WHERE source IN (${source.members.map(({ id }) => id).join(', ')})`,
      );
      // If no rune is missing, all rows count as records, and the query needs no condition.
      if (lacks > 0) isCounted = `rune_id IN (SELECT id FROM ${this.runes})`;
    }
    await store.run(`INSERT INTO ${this.holds} ${blocksSelect(source, range, isCounted)}`);
  }

  /** True when a runes file of the last build was removed or changed. */
  async #lostRunes(): Promise<boolean> {
    const kept = this.unchanged.filter(({ form }) => form === 'runes').length;
    const { known, store } = this.reading;
    const before = await store.number(`SELECT count(*) AS number FROM ${known.files} WHERE form = 'runes'`);
    return before > kept;
  }

  /**
   * Joins all runes files. Takes the runes of unchanged files from the state if possible. Then reads unchanged ledgers
   * again if a change of the runes changes their records.
   */
  async #updateRunes(): Promise<void> {
    const { known, store } = this.reading;
    const unread = this.unchanged.filter(({ id }) => !this.read.has(id));
    const files = unread.filter(({ form }) => form === 'runes');
    const ledgers = unread.filter(({ form }) => isLedger(form));
    const tables = () => this.sources.filter((s) => s.form === 'runes');
    if (files.length > 0 && tables().length === 0 && !(await this.#lostRunes())) {
      this.runes = known.runes;
      return;
    }
    const ledger = this.sources.find(({ form }) => isLedger(form))?.members[0]?.file.name ?? ledgers[0]?.file.name;
    const load = (kept: readonly NumberedFile[]) => {
      const ids = kept.map(({ id }) => id);
      return loadRunes(tables(), ids, ledger, known.runes, store);
    };
    let joined = await load(files);
    if (joined === undefined) {
      await this.#readAll(files);
      joined = await load([]);
    }
    if (joined === undefined) throw new Error('all runes tables were read, but not joined');
    this.joined = joined;
    this.runes = joined.all;
    const again = await ledgersToReadAgain(joined, known, store);
    await this.#readAll(ledgers.filter(({ id }) => again === 'all' || again.has(id)));
  }
}
