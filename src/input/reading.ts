/**
 * Reads the files that a build needs, in three steps: those that changed; ledgers again, when a rune that they name changed or was added; and unchanged files
 * that share a block with what was read. Every new file's records are checked; an unchanged file's were.
 */
import { join } from 'node:path';
import { type Store, toNumber } from '../store/duckdb.ts';
import { definitionOf } from '../store/tables.ts';
import type { BlockRange } from './blockRange.ts';
import type { InputFile } from './discover.ts';
import { reportBadRecords } from './explain.ts';
import type { ReadMeasure } from './readMeasure.ts';
import { recognise } from './recognise.ts';
import { Report } from './report.ts';
import { ledgersToReadAgain, leftOutSelect, loadRunes } from './runes.ts';
import type { NumberedFile, UnchangedFile } from './selection.ts';
import {
  bytesOf,
  groupAlike,
  heldSelect,
  isInCanonicalForm,
  type Numbered,
  type RawSource,
  readSource,
  withCanonicalCells,
} from './sources.ts';

export class Reading {
  readonly #unchanged: readonly UnchangedFile[];
  readonly #range: BlockRange | undefined;
  readonly #scratch: string;
  readonly #store: Store;
  readonly #measure: ReadMeasure;
  readonly #forms: Map<number, string>;
  readonly #read = new Set<number>();
  readonly #files: InputFile[] = [];
  /** Files by the number that their records carry. */
  readonly names: Map<number, string>;
  readonly sources: RawSource[] = [];
  readonly #withoutRecords: string[] = [];
  hasRunes = false;

  constructor(unchanged: readonly UnchangedFile[], range: BlockRange | undefined, scratch: string, store: Store, measure: ReadMeasure) {
    this.#unchanged = unchanged;
    this.#range = range;
    this.#scratch = scratch;
    this.#store = store;
    this.#measure = measure;
    this.#forms = new Map(unchanged.map(({ id, form }) => [id, form]));
    this.names = new Map(unchanged.map(({ id, file }) => [id, file.name]));
  }

  /** Numbers of the files that were read. */
  get read(): ReadonlySet<number> {
    return this.#read;
  }

  /** The ledgers by their numbers, those that were not read again included. */
  get ledgers(): Map<number, string> {
    return new Map([...this.names].filter(([id]) => this.formOf(id) === 'ledger'));
  }

  /** What the user should know of the files that were read. */
  get notices(): string[] {
    const [first, ...others] = this.#withoutRecords;
    if (first === undefined) return [];
    return [others.length === 0 ? `${first} holds no records` : `${others.length + 1} files hold no records, such as ${first}`];
  }

  /** The files that were read. */
  get files(): InputFile[] {
    return [...this.#files];
  }

  /** Those of them that are read again when records are rendered: Parquet files, which the store holds as views. */
  get views(): InputFile[] {
    return this.sources.filter(({ isView }) => isView).flatMap(({ members }) => members.map(({ file }) => file));
  }

  formOf(id: number): string {
    return this.#forms.get(id) ?? '';
  }

  /** Reads and checks new and changed files, and what depends on them by runes. Makes the tables `holds` and `left_out`. */
  async readTouched(files: readonly NumberedFile[]): Promise<void> {
    await this.#store.run(`CREATE TEMP TABLE holds (${definitionOf('holds')})`);
    await this.#store.run(`CREATE TEMP TABLE left_out (${definitionOf('left_out')})`);
    for (const { id, file } of files) this.names.set(id, file.name);
    const sources = await this.#readAll(files);
    const report = new Report();
    for (const source of sources) {
      // What is in place is read here first.
      const check = () => isInCanonicalForm(source, this.#store);
      if (source.isView && (await this.#measure.scan(bytesOf(source.members), check))) this.#replace(source, withCanonicalCells(source));
      else await reportBadRecords(source, report, this.#store);
    }
    report.throwIfAny(summary);
    const forms = files.map(({ id }) => this.formOf(id));
    const needsRunes = forms.includes('runes') || forms.includes('ledger') || (await this.#lostRunes());
    if (needsRunes) await this.#settleRunes();
    this.#measure.finish();
    for (const source of this.sources) await this.#hold(source);
  }

  /** Reads unchanged files that hold a block of the table `affected`. */
  async readRelated(): Promise<void> {
    const rows = await this.#store.rows(
      'SELECT DISTINCT source FROM known_held WHERE block_height IN (SELECT block_height FROM affected) ORDER BY source',
    );
    const holders = new Set(rows.map((row) => toNumber(row['source'])));
    const related = this.#unchanged.filter(({ id }) => holders.has(id) && !this.#read.has(id));
    const sources = await this.#readAll(related);
    if (!this.hasRunes && sources.some((source) => source.form === 'ledger')) await this.#settleRunes();
    this.#measure.finish();
    for (const source of sources) await this.#hold(source);
  }

  async #readAll(files: readonly NumberedFile[]): Promise<RawSource[]> {
    const recognised: Numbered[] = [];
    this.#measure.expect(files.length);
    for (const { id, file } of files) {
      this.#files.push(file);
      const found = await recognise(file, this.#store, join(this.#scratch, `${id}.plain`));
      this.#forms.set(id, found.form);
      this.#read.add(id);
      this.#measure.found(found.form === 'no-records' ? 0 : found.bytes);
      if (found.form === 'no-records') this.#withoutRecords.push(file.name);
      else recognised.push({ ...found, id });
    }
    const sources: RawSource[] = [];
    for (const group of groupAlike(recognised)) sources.push(await readSource(group, this.#range, this.#store, this.#measure));
    for (const source of sources) this.sources.push(source);
    return sources;
  }

  #replace(source: RawSource, by: RawSource): void {
    this.sources[this.sources.indexOf(source)] = by;
  }

  async #hold(source: RawSource): Promise<void> {
    if (source.form === 'runes') return;
    let isCounted: string | undefined;
    if (source.form === 'ledger') {
      await this.#store.run(`INSERT INTO left_out ${leftOutSelect(source, this.#range)}`);
      const { lacks } = await this.#store.row(
        `SELECT count(*) AS lacks FROM left_out WHERE source IN (${source.members.map(({ id }) => id).join(', ')})`,
      );
      // Most ledgers lack no rune, and need not be joined to be counted.
      if (toNumber(lacks) > 0) isCounted = 'rune_id IN (SELECT id FROM runes)';
    }
    await this.#store.run(`INSERT INTO holds ${heldSelect(source, this.#range, isCounted)}`);
  }

  /** Whether a file with runes is gone. */
  async #lostRunes(): Promise<boolean> {
    const kept = this.#unchanged.filter(({ form }) => form === 'runes').length;
    const { known } = await this.#store.row(`SELECT count(*) AS known FROM known_files WHERE form = 'runes'`);
    return toNumber(known) > kept;
  }

  /** Makes the table `runes` from all runes files, and reads the ledgers again whose records change by it. */
  async #settleRunes(): Promise<void> {
    this.hasRunes = true;
    const unread = (form: string) => this.#unchanged.filter((file) => file.form === form && !this.#read.has(file.id));
    await this.#readAll(unread('runes'));
    const runes = this.sources.filter((s) => s.form === 'runes');
    const ledger = this.sources.find((s) => s.form === 'ledger')?.members[0]?.file.name ?? unread('ledger')[0]?.file.name;
    await loadRunes(runes, ledger, this.#store);
    const again = await ledgersToReadAgain(this.#store);
    await this.#readAll(unread('ledger').filter(({ id }) => again === 'all' || again.has(id)));
  }
}

const summary = (count: number) => `the input has ${count} fault(s); nothing was written`;
