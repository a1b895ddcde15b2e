/**
 * Reads the files that a build needs, in three steps:
 * 1. new and changed files, whose records are checked;
 * 2. unchanged ledgers, when a rune that they name changed or was added;
 * 3. unchanged files that share a block with a file from steps 1 and 2.
 */
import { basename, join } from 'node:path';
import { int } from '../store/duckdb.ts';
import { definitionOf, TABLES } from '../store/tables.ts';
import { reportBadRecords } from './badRecords.ts';
import { BLOCKS_FILE } from './blocksRead.ts';
import { isInCanonicalForm, withCanonicalCells } from './canonicalForm.ts';
import type { NumberedFile, UnchangedFile } from './changedFiles.ts';
import type { InputFile } from './discover.ts';
import { bytesOf, groupAlike, type Numbered, type RawSource, type Reading } from './rawSource.ts';
import { readSource } from './readSource.ts';
import { isLedger, recognise } from './recognise.ts';
import { blocksSelect } from './recordSql.ts';
import { Report } from './report.ts';
import { ledgersToReadAgain, leftOutSelect, loadRunes } from './runes.ts';

export class InputReader {
  readonly #unchanged: readonly UnchangedFile[];
  readonly reading: Reading;
  readonly #forms: Map<number, string>;
  /** The files that this build has read, by file number. */
  readonly read = new Map<number, InputFile>();
  /** File names by file number. */
  readonly names: Map<number, string>;
  readonly sources: RawSource[] = [];
  readonly #withoutRecords: string[] = [];
  hasRunes = false;

  constructor(unchanged: readonly UnchangedFile[], reading: Reading) {
    this.#unchanged = unchanged;
    this.reading = reading;
    this.#forms = new Map(unchanged.map(({ id, form }) => [id, form]));
    this.names = new Map(unchanged.map(({ id, file }) => [id, file.name]));
  }

  /** Names of all ledgers by file number, also of ledgers that were not read. */
  get ledgers(): Map<number, string> {
    return new Map([...this.names].filter(([id]) => isLedger(this.formOf(id))));
  }

  get notices(): string[] {
    const [first, ...others] = this.#withoutRecords;
    if (first === undefined) return [];
    return [others.length === 0 ? `${first} has no records` : `${others.length + 1} files have no records, such as ${first}`];
  }

  /** The Parquet files that this build has read. They are views, so rendering reads them again. */
  get views(): InputFile[] {
    return this.sources.filter(({ isView }) => isView).flatMap(({ members }) => members.map(({ file }) => file));
  }

  formOf(id: number): string {
    return this.#forms.get(id) ?? '';
  }

  /**
   * Reads and checks new and changed files, then the ledgers whose runes changed. Creates the tables `holds` and
   * `left_out`.
   */
  async readTouched(files: readonly NumberedFile[]): Promise<void> {
    const { store, progress } = this.reading;
    await store.run(`CREATE TEMP TABLE holds (${definitionOf(TABLES.holds.columns)})`);
    await store.run(`CREATE TEMP TABLE left_out (${definitionOf(TABLES.left_out.columns)})`);
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

  /** Reads the unchanged files that have a block of the table `affected`. */
  async readRelated(): Promise<void> {
    if (this.#unchanged.length === 0) return;
    const { store, progress } = this.reading;
    const rows = await store.rows(
      'SELECT DISTINCT source FROM known_held WHERE block_height IN (SELECT block_height FROM affected) ORDER BY source',
      { source: int },
    );
    const holders = new Set(rows.map((row) => row.source));
    const related = this.#unchanged.filter(({ id }) => holders.has(id) && !this.read.has(id));
    const sources = await this.#readAll(related);
    if (!this.hasRunes && sources.some(({ form }) => isLedger(form))) await this.#updateRunes();
    progress.finish();
    for (const source of sources) await this.#listBlocks(source);
  }

  async #readAll(files: readonly NumberedFile[]): Promise<RawSource[]> {
    const { scratch, store, progress } = this.reading;
    const recognised: Numbered[] = [];
    progress.expect(files.length);
    for (const { id, file } of files) {
      this.read.set(id, file);
      const found = await recognise(file, store, join(scratch, `${id}.plain`));
      this.#forms.set(id, found.form);
      progress.found(found.form === 'no-records' ? 0 : found.bytes);
      if (found.form !== 'no-records') recognised.push({ ...found, id });
      // Lists of blocks that pulls write never have records.
      else if (basename(file.path) !== BLOCKS_FILE) this.#withoutRecords.push(file.name);
    }
    const sources: RawSource[] = [];
    for (const group of groupAlike(recognised)) sources.push(await readSource(group, this.reading));
    for (const source of sources) this.sources.push(source);
    return sources;
  }

  /** Adds a source's blocks to the table `holds`, and the rows of a ledger that lack their rune to `left_out`. */
  async #listBlocks(source: RawSource): Promise<void> {
    if (source.form === 'runes') return;
    const { range, store } = this.reading;
    let isCounted: string | undefined;
    if (isLedger(source.form)) {
      await store.run(`INSERT INTO left_out ${leftOutSelect(source, range)}`);
      const { lacks } = await store.row(
        `SELECT count(*) AS lacks FROM left_out WHERE source IN (${source.members.map(({ id }) => id).join(', ')})`,
        { lacks: int },
      );
      // A ledger without missing runes is counted without a join.
      if (lacks > 0) isCounted = 'rune_id IN (SELECT id FROM runes)';
    }
    await store.run(`INSERT INTO holds ${blocksSelect(source, range, isCounted)}`);
  }

  /** True when a runes file of the last build was removed or changed. */
  async #lostRunes(): Promise<boolean> {
    const kept = this.#unchanged.filter(({ form }) => form === 'runes').length;
    const { known } = await this.reading.store.row(`SELECT count(*) AS known FROM known_files WHERE form = 'runes'`, { known: int });
    return known > kept;
  }

  /** Creates the table `runes` from all runes files, and reads again the ledgers whose records change. */
  async #updateRunes(): Promise<void> {
    this.hasRunes = true;
    const { store } = this.reading;
    const unread = this.#unchanged.filter(({ id }) => !this.read.has(id));
    await this.#readAll(unread.filter(({ form }) => form === 'runes'));
    const ledgers = unread.filter(({ form }) => isLedger(form));
    const runes = this.sources.filter((s) => s.form === 'runes');
    const ledger = this.sources.find(({ form }) => isLedger(form))?.members[0]?.file.name ?? ledgers[0]?.file.name;
    await loadRunes(runes, ledger, store);
    const again = await ledgersToReadAgain(store);
    await this.#readAll(ledgers.filter(({ id }) => again === 'all' || again.has(id)));
  }
}
