/**
 * Ledger of a pull from a node, on disk: unspent outputs with runes, and mints, as of the last indexed block.
 *
 *     state.json                     names the other files, so new files take effect when it is replaced
 *     outputs-840000-851199.sorted   outputs that these blocks created or spent (sortedFile.ts)
 *     mints-851199.txt               mints of each rune up to this block
 *     journal-851199.log             changes of each later block (journal.ts)
 *
 * Only settled blocks, which no reorganisation can replace, move from the journal to sorted files. Sorted files of
 * similar size are merged, so that a look-up searches only a few files. The caller stores the runes, not the ledger.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { hex64, misfitOf } from '../contract/schemas.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { syncFile, syncFolder } from '../disk/sync.ts';
import { codeOf, messageOf } from '../errors.ts';
import { countCrossing, exceeds, type WorkLimits } from '../limits.ts';
import { blockOf, type RuneId, runeId, runeIdText } from '../runes/runeId.ts';
import type { Changes, Ledger, Mintable, RuneOutput } from '../runes/unspentLedger.ts';
import { blockRecord, type ChangeTarget, type IndexedBlock, readRecord } from './blockRecord.ts';
import { type Change, ChangeTable } from './changeTable.ts';
import { Journal } from './journal.ts';
import { readOutput } from './outputBytes.ts';
import { checksum, DamagedStateError, OtherFormatError } from './readChecked.ts';
import { merged, SortedFile, writeSortedFile } from './sortedFile.ts';

/** Version of the files' format. Up to format 2, rows could have wrong senders after blocks moved to sorted files. */
const FORMAT = 3;
const STATE_FILE = 'state.json';

/** File of outputs that a pull has not compared with its node yet (pull/node/checkOutputs.ts). */
export const UNCHECKED_FILE = 'unchecked.txt';

const stateFile = z.strictObject({
  format: z.literal(FORMAT),
  network: z.string(),
  /** First height whose rows are written. */
  rows_from: z.int().min(0),
  /** Height and hash of the last block in the sorted files. The hash is missing until the first blocks move there. */
  base: z.int().min(-1),
  base_hash: hex64.optional(),
  outputs: z.array(z.string().regex(/^outputs-[0-9]+-[0-9]+\.sorted$/)),
  mints: z
    .string()
    .regex(/^mints-[0-9]+\.txt$/)
    .optional(),
  journal: z.string().regex(/^journal-(?:none|[0-9]+)\.log$/),
});
type StateFile = z.infer<typeof stateFile>;

/** Fields of a rune that are needed to index later blocks. */
export interface KnownRune {
  readonly id: RuneId;
  readonly name: bigint;
  /** Block that added the rune. Can differ from the block of the id: the first rune of mainnet has the id 1:0. */
  readonly height: number;
  readonly terms: Mintable['terms'];
}

export interface LedgerOptions {
  readonly folder: string;
  readonly network: string;
  /** First height of runes on this network. */
  readonly firstHeight: number;
  /** First height whose rows are written. Used only for a new ledger. */
  readonly rowsFrom: number;
  /** Ascending by number. Runes of blocks above the ledger's last block are ignored. */
  readonly runes: Iterable<KnownRune>;
  readonly limits: LedgerLimits;
}

type LedgerLimits = Pick<WorkLimits, 'journalBytes' | 'pendingBytes' | 'sortedPageBytes' | 'mergeBelow'>;

/** Ledger after a settled block. */
interface SettledLedger {
  readonly folder: string;
  readonly network: string;
  readonly rowsFrom: number;
  readonly height: number;
  readonly hash: string;
  /** All unspent outputs with runes in parts, ascending by key, and an upper bound of their number. */
  readonly outputs: AsyncIterable<Iterable<Change>>;
  readonly most: number;
  readonly mints: ReadonlyMap<RuneId, number>;
  readonly limits: Pick<WorkLimits, 'sortedPageBytes'>;
}

/**
 * Writes a ledger as if all blocks up to a height had been read and settled. Returns the last step, which writes
 * `state.json` and so replaces the ledger that the folder had.
 */
export async function settledLedger({
  folder,
  network,
  rowsFrom,
  height,
  hash,
  outputs,
  most,
  mints,
  limits,
}: SettledLedger): Promise<() => void> {
  mkdirSync(folder, { recursive: true });
  const name = `outputs-0-${height}.sorted`;
  await writeSortedFile(join(folder, name), outputs, most, limits);
  writeMints(join(folder, `mints-${height}.txt`), mints);
  const journal = `journal-${height}.log`;
  Journal.create(join(folder, journal)).close();
  syncFolder(folder);
  const files = { outputs: [name], mints: `mints-${height}.txt`, journal };
  return () => writeState(folder, { format: FORMAT, network, rows_from: rowsFrom, base: height, base_hash: hash, ...files });
}

/** Removes the state of a folder, so that it has no ledger. */
export const removeState = (folder: string): void => rmSync(join(folder, STATE_FILE), { force: true });

export class DiskLedger implements Ledger {
  readonly #folder: string;
  #state: StateFile;
  readonly #files: SortedFile[] = [];
  #table = new ChangeTable();
  #mints = new Map<RuneId, number>();
  #journal: Journal;
  readonly #runes = new Map<RuneId, KnownRune>();
  readonly #names = new Set<bigint>();
  readonly #limits: LedgerLimits;

  /** Opens the ledger of a folder, or creates one. Throws a DamagedStateError if a file is missing or damaged. */
  static open(options: LedgerOptions): DiskLedger {
    try {
      return new DiskLedger(options);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      throw new DamagedStateError(messageOf(error));
    }
  }

  private constructor({ folder, network, firstHeight, rowsFrom, runes, limits }: LedgerOptions) {
    this.#folder = folder;
    this.#limits = limits;
    const found = readState(folder);
    if (found) {
      this.#state = found;
    } else {
      mkdirSync(folder, { recursive: true });
      this.#state = { format: FORMAT, network, rows_from: rowsFrom, base: firstHeight - 1, outputs: [], journal: 'journal-none.log' };
      Journal.create(join(folder, this.#state.journal)).close();
      writeState(folder, this.#state);
    }
    removeOthers(folder, this.#state);
    this.#journal = this.#load();
    for (const rune of runes) if (rune.height <= this.height) this.#addRune(rune);
  }

  get height(): number {
    return this.#journal.blocks.at(-1)?.height ?? this.#state.base;
  }

  /** Hash of the last block, undefined if there is none. */
  get hash(): string | undefined {
    return this.#journal.blocks.at(-1)?.hash ?? this.#state.base_hash;
  }

  /** Height of the last block in sorted files. `rewind` cannot remove it. */
  get base(): number {
    return this.#state.base;
  }

  /** Returns the hash of the block at a height. Undefined below `base`, above the last block, and before any block. */
  hashAt(height: number): string | undefined {
    return height === this.base ? this.#state.base_hash : this.#journal.blocks[height - this.base - 1]?.hash;
  }

  get network(): string {
    return this.#state.network;
  }

  /** First height whose rows are kept. */
  get rowsFrom(): number {
    return this.#state.rows_from;
  }

  /** Raises the first height whose rows are kept. */
  keepRowsFrom(height: number): void {
    this.#state = { ...this.#state, rows_from: height };
    writeState(this.#folder, this.#state);
  }

  get runes(): number {
    return this.#runes.size;
  }

  output(bytes: Uint8Array, at: number): RuneOutput | undefined {
    let found = this.#table.find(bytes, at);
    for (let i = this.#files.length - 1; found === undefined && i >= 0; i--) found = this.#files[i]?.find(bytes, at);
    return found === undefined || found === 'spent' ? undefined : readOutput(found);
  }

  rune(id: RuneId): Mintable | undefined {
    const rune = this.#runes.get(id);
    return rune && { block: blockOf(id), terms: rune.terms, mints: this.#mints.get(id) ?? 0 };
  }

  nameTaken(name: bigint): boolean {
    return this.#names.has(name);
  }

  /** Adds the next block in memory. `sync` writes the block to disk. */
  apply(block: IndexedBlock, changes: Changes): void {
    for (const { id, name, terms } of changes.runes) this.#addRune({ id, name, terms, height: block.height });
    const record = blockRecord(block, changes);
    this.#journal.append(block, record);
    readRecord(record, adding(this.#table, this.#mints));
  }

  sync(): void {
    this.#journal.sync();
  }

  /** Removes all blocks above a height. Throws an Error for a height below `base`. */
  rewind(height: number): void {
    if (height < this.base) throw new Error(`cannot remove blocks above ${height}: the journal begins after block ${this.base}`);
    this.#journal.cut(height);
    this.#journal.sync();
    this.#journal.close();
    for (const { id, name, height: made } of [...this.#runes.values()]) {
      if (made <= height) continue;
      this.#runes.delete(id);
      this.#names.delete(name);
    }
    this.#journal = this.#load();
  }

  /** True if the journal entries that are not on disk yet take so much memory that `sync` is due. */
  get isSyncDue(): boolean {
    return exceeds(this.#limits, 'pendingBytes', this.#journal.pendingBytes);
  }

  /** True if the journal is so long that pulls start slowly, because each pull reads it completely. */
  get isJournalLong(): boolean {
    return exceeds(this.#limits, 'journalBytes', this.#journal.size);
  }

  /** Moves the blocks up to a height from the journal to sorted files. */
  async settle(height: number): Promise<void> {
    this.sync();
    const base = this.#journal.blocks.filter((block) => block.height <= height).at(-1);
    if (base === undefined) return;
    const last = base.height;
    const folder = this.#folder;
    let [table, mints] = [this.#table, this.#mints];
    if (last < this.height) {
      [table, mints] = [new ChangeTable(), this.#baseMints()];
      const target = adding(table, mints);
      for (const { block, record } of this.#journal.records()) if (block.height <= last) readRecord(record, target);
    }
    const newest = `outputs-${this.base + 1}-${last}.sorted`;
    await writeSortedFile(join(folder, newest), [table.sorted()], table.count, this.#limits);
    const state: StateFile = {
      ...this.#state,
      base: last,
      base_hash: base.hash,
      outputs: await this.#merge([...this.#state.outputs, newest], last),
      mints: `mints-${last}.txt`,
      journal: `journal-${last}.log`,
    };
    writeMints(join(folder, `mints-${last}.txt`), mints);
    const journal = Journal.create(join(folder, state.journal));
    try {
      for (const { block, record } of this.#journal.records()) if (block.height > last) journal.append(block, record);
      journal.sync();
    } finally {
      journal.close();
    }
    syncFolder(folder);
    writeState(folder, state);
    this.#journal.close();
    this.#state = state;
    this.#journal = this.#load();
    removeOthers(folder, state);
  }

  close(): void {
    this.#journal.close();
    for (const file of this.#files) file.close();
  }

  /** Merges the newest file with older files that are not much larger. Returns the names of all files afterwards. */
  async #merge(names: readonly string[], last: number): Promise<string[]> {
    const files: SortedFile[] = [];
    try {
      for (const name of names) files.push(new SortedFile(join(this.#folder, name)));
      let first = files.length - 1;
      let bytes = files[first]?.size ?? 0;
      for (; first > 0 && (files[first - 1]?.size ?? 0) < this.#limits.mergeBelow * bytes; first--) bytes += files[first - 1]?.size ?? 0;
      if (first === files.length - 1) return [...names];
      countCrossing('mergeBelow');
      const some = files.slice(first);
      const [, from] = /^outputs-([0-9]+)/.exec(names[first] ?? '') ?? [];
      const name = `outputs-${from}-${last}.sorted`;
      const most = some.reduce((sum, { entries }) => sum + entries, 0);
      await writeSortedFile(join(this.#folder, name), [merged(some, first === 0)], most, this.#limits);
      return [...names.slice(0, first), name];
    } finally {
      for (const file of files) file.close();
    }
  }

  /** Opens the files of the state. Computes the table and the mints from the journal. */
  #load(): Journal {
    for (const file of this.#files.splice(0)) file.close();
    try {
      for (const name of this.#state.outputs) this.#files.push(new SortedFile(join(this.#folder, name)));
      this.#table = new ChangeTable();
      this.#mints = this.#baseMints();
      const target = adding(this.#table, this.#mints);
      return Journal.open(join(this.#folder, this.#state.journal), (record) => readRecord(record, target));
    } catch (error) {
      for (const file of this.#files.splice(0)) file.close();
      throw error;
    }
  }

  #baseMints(): Map<RuneId, number> {
    return this.#state.mints === undefined ? new Map() : readMints(join(this.#folder, this.#state.mints));
  }

  #addRune(rune: KnownRune): void {
    this.#runes.set(rune.id, rune);
    this.#names.add(rune.name);
  }
}

/** Returns a target that adds the changes of journal entries to `table` and `mints`. */
const adding = (table: ChangeTable, mints: Map<RuneId, number>): ChangeTarget => ({
  spend: (key, at) => table.spend(key, at),
  create: (key, at, value) => table.create(key, at, value),
  mint: (rune, count) => mints.set(rune, (mints.get(rune) ?? 0) + count),
});

/**
 * Reads the state of the ledger in a folder. Returns undefined if there is none. Throws an OtherFormatError for the
 * state of another version, and a DamagedStateError for a damaged state.
 */
export function readState(folder: string): StateFile | undefined {
  const path = join(folder, STATE_FILE);
  if (!existsSync(path)) return undefined;
  try {
    const state = JSON.parse(readFileSync(path, 'utf8')) as unknown;
    const { format } = z.looseObject({ format: z.int() }).parse(state);
    if (format < FORMAT) throw new OtherFormatError(`${folder} has format ${format}, and rows pulled with it may name wrong senders`);
    if (format > FORMAT) throw new OtherFormatError(`${folder} has format ${format} of a newer version; this version knows ${FORMAT}`);
    return stateFile.parse(state);
  } catch (error) {
    if (error instanceof OtherFormatError) throw error;
    throw new DamagedStateError(`${path} cannot be read: ${error instanceof z.ZodError ? misfitOf(error) : messageOf(error)}`);
  }
}

const writeState = (folder: string, state: StateFile): void => replaceDurably(join(folder, STATE_FILE), `${JSON.stringify(state)}\n`);

/** Removes the files that the state does not name: outdated files, and files of a killed pull. */
function removeOthers(folder: string, { outputs, mints, journal }: StateFile): void {
  const own = new Set([STATE_FILE, UNCHECKED_FILE, ...outputs, mints, journal]);
  for (const name of readdirSync(folder)) if (!own.has(name)) rmSync(join(folder, name), { recursive: true });
}

/** Writes one line per rune. The first line is a checksum. */
function writeMints(path: string, mints: ReadonlyMap<RuneId, number>): void {
  const lines = [...mints].map(([rune, count]) => `${runeIdText(rune)} ${count}\n`).join('');
  writeFileSync(path, `${checksum(Buffer.from(lines))}\n${lines}`);
  syncFile(path);
}

function readMints(path: string): Map<RuneId, number> {
  const text = readFileSync(path, 'utf8');
  const end = text.indexOf('\n') + 1;
  if (text.slice(0, end) !== `${checksum(Buffer.from(text.slice(end)))}\n`) throw new DamagedStateError(`${path} is damaged`);
  const mints = new Map<RuneId, number>();
  for (const line of text.slice(end).split('\n')) {
    const [block, tx, count] = line.split(/[: ]/).map(Number);
    if (block !== undefined && tx !== undefined && count !== undefined) mints.set(runeId(block, tx), count);
  }
  return mints;
}
