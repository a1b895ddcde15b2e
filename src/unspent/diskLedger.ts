/**
 * Ledger of a pull from a node: unspent outputs with runes, and mints. The caller stores the runes.
 *
 *     state.json                     the last settled block, the mints, and the names of the other files
 *     outputs-840000-851199.sorted   outputs that these blocks created or spent (sortedFile.ts)
 *
 * On disk are settled blocks only. The changes of later blocks are in memory: after a start, the caller applies these blocks again from
 * their rows. Sorted files of similar size are merged, so that a look-up searches only a few files.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { hex64, misfitOf } from '../contract/schemas.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { syncFolder } from '../disk/sync.ts';
import { messageOf } from '../errors.ts';
import { countCrossing, exceeds, type WorkLimits } from '../limits.ts';
import { blockOf, type RuneId } from '../runes/runeId.ts';
import type { Changes, Ledger, Mintable, NewRune, RuneOutput } from '../runes/unspentLedger.ts';
import { ChangeTable } from './changeTable.ts';
import { entryOf } from './entries.ts';
import { DamagedStateError, merged, type SortedFacts, SortedFile, sortedFacts, writeSortedFile } from './sortedFile.ts';

const FORMAT = 5;
const STATE_FILE = 'state.json';

/** File of outputs that a pull has not compared with its node yet (pull/node/checkOutputs.ts). */
export const UNCHECKED_FILE = 'unchecked.txt';

const ledgerState = z.strictObject({
  network: z.string(),
  /** First height whose rows are kept. */
  rows_from: z.int().min(0),
  /** Height and hash of the last block in the sorted files. The hash is missing until the first blocks settle. */
  base: z.int().min(-1),
  base_hash: hex64.optional(),
  outputs: z.array(sortedFacts),
  /** Mints up to this block, `<number of the rune's id>:<count>`, separated by spaces. */
  mints: z.string(),
});
type LedgerState = z.infer<typeof ledgerState>;

const stateFile = z.strictObject({ format: z.literal(FORMAT), sha256: hex64, state: ledgerState });
type StateFile = z.infer<typeof stateFile>;

/** Fields of a rune that are needed to index later blocks. */
export interface KnownRune extends Pick<NewRune, 'id' | 'name' | 'terms'> {
  /** Block that added the rune. Can differ from the block of the id: the first rune of mainnet has the id 1:0. */
  readonly height: number;
}

/** Block in memory. The hash is unknown after a kill if the block has no rows. */
export interface IndexedBlock {
  readonly height: number;
  readonly hash: string | undefined;
}

interface AppliedBlock extends IndexedBlock {
  /** Size of the table of changes after this block. */
  readonly end: number;
  readonly mints: ReadonlyMap<RuneId, number>;
}

interface LedgerOptions {
  readonly folder: string;
  readonly network: string;
  /** First height of runes on this network. */
  readonly firstHeight: number;
  /** First height whose rows are written. Used only for a new ledger. */
  readonly rowsFrom: number;
  readonly limits: Pick<WorkLimits, 'changesBytes' | 'sortedPageBytes' | 'mergeBelow'>;
}

interface SettledLedger extends Omit<LedgerOptions, 'firstHeight'> {
  readonly height: number;
  readonly hash: string;
  /** All unspent outputs with runes in parts, as entries ascending by outpoint, and an upper bound of their number. */
  readonly outputs: AsyncIterable<Iterable<Buffer>>;
  readonly most: number;
  readonly mints: ReadonlyMap<RuneId, number>;
}

/** Writes a ledger as if all blocks up to `height` had been read and settled. Returns the last step, which replaces the folder's ledger. */
export async function settledLedger(settled: SettledLedger): Promise<() => void> {
  const { folder, network, rowsFrom, height, hash, outputs, most, mints, limits } = settled;
  const file = await writeSortedFile(folder, `outputs-0-${height}.sorted`, outputs, most, limits);
  const state = { network, rows_from: rowsFrom, base: height, base_hash: hash, outputs: [file], mints: mintsText(mints) };
  return () => writeState(folder, state);
}

export const removeState = (folder: string): void => rmSync(join(folder, STATE_FILE), { force: true });

export class DiskLedger implements Ledger {
  #state: LedgerState;
  #files: SortedFile[];
  /** Blocks above `base`, by ascending height without gaps. */
  #blocks: AppliedBlock[] = [];
  #changes = new ChangeTable();
  readonly #mints: Map<RuneId, number>;
  readonly #runes = new Map<RuneId, KnownRune>();
  readonly #names = new Set<bigint>();

  /** Opens the settled ledger of a folder, or an empty one. Throws a DamagedStateError if a file is missing or damaged. */
  constructor(private readonly options: LedgerOptions) {
    const { folder, network, firstHeight, rowsFrom } = options;
    const found = readState(folder);
    this.#state = found ?? { network, rows_from: rowsFrom, base: firstHeight - 1, outputs: [], mints: '' };
    if (found) removeOthers(folder, found);
    else writeState(folder, this.#state);
    this.#files = this.#open(this.#state.outputs);
    this.#mints = new Map(this.#state.mints.match(/[0-9:]+/g)?.map((text) => text.split(':').map(Number) as [RuneId, number]));
  }

  get height(): number {
    return this.base + this.#blocks.length;
  }

  get hash(): string | undefined {
    return this.hashAt(this.height);
  }

  /** Height of the last settled block. `rewind` cannot remove it. */
  get base(): number {
    return this.#state.base;
  }

  /** Undefined if the hash is unknown, as of all blocks below `base`. */
  hashAt(height: number): string | undefined {
    return height === this.base ? this.#state.base_hash : this.#blocks[height - this.base - 1]?.hash;
  }

  get network(): string {
    return this.#state.network;
  }

  get rowsFrom(): number {
    return this.#state.rows_from;
  }

  /** Raises the first height whose rows are kept, but not above the rows that a start needs. */
  keepRowsFrom(height: number): void {
    const rows_from = Math.min(height, this.base + 1);
    if (rows_from <= this.rowsFrom) return;
    this.#state = { ...this.#state, rows_from };
    writeState(this.options.folder, this.#state);
  }

  get runes(): number {
    return this.#runes.size;
  }

  output(bytes: Uint8Array, at: number): RuneOutput | undefined {
    let found = this.#changes.find(bytes, at);
    for (let i = this.#files.length - 1; found === undefined && i >= 0; i--) found = this.#files[i]?.find(bytes, at);
    return found === 'spent' ? undefined : found;
  }

  rune(id: RuneId): Mintable | undefined {
    const rune = this.#runes.get(id);
    return rune && { block: blockOf(id), terms: rune.terms, mints: this.#mints.get(id) ?? 0 };
  }

  nameTaken(name: bigint): boolean {
    return this.#names.has(name);
  }

  /** Adds a rune of a block up to the last one, or of one that `apply` adds next. */
  addRune({ id, name, height, terms }: KnownRune): void {
    this.#runes.set(id, { id, name, height, terms });
    this.#names.add(name);
  }

  apply({ height, hash }: IndexedBlock, { spent, created, runes, mints }: Changes): void {
    for (const rune of runes) this.addRune({ ...rune, height });
    for (const outpoint of spent) this.#changes.add(entryOf(outpoint));
    for (const output of created) this.#changes.add(entryOf(output.outpoint, output));
    const minted = new Map([...runes.filter((rune) => rune.mints > 0).map(({ id, mints: count }) => [id, count] as const), ...mints]);
    for (const [rune, count] of minted) this.#mints.set(rune, (this.#mints.get(rune) ?? 0) + count);
    this.#blocks.push({ height, hash, end: this.#changes.size, mints: minted });
  }

  /** Removes all blocks above a height, which must not be below `base`. */
  rewind(height: number): void {
    if (height < this.base) throw new Error(`cannot remove blocks above ${height}: block ${this.base} is settled`);
    const removed = this.#blocks.splice(height - this.base);
    this.#changes = this.#changes.part(0, this.#blocks.at(-1)?.end ?? 0);
    subtractMints(this.#mints, removed);
    for (const { id, name, height: made } of [...this.#runes.values()]) {
      if (made <= height) continue;
      this.#runes.delete(id);
      this.#names.delete(name);
    }
  }

  /** True if the changes in memory are so many that blocks must settle. */
  get isSettleDue(): boolean {
    return exceeds(this.options.limits, 'changesBytes', this.#changes.size);
  }

  /** Moves the blocks up to a height, whose hash must be known, from memory to sorted files. */
  async settle(height: number): Promise<void> {
    const { base } = this;
    const hash = this.hashAt(height);
    const end = this.#blocks[height - base - 1]?.end;
    if (end === undefined || hash === undefined) return;
    const later = this.#blocks.slice(height - base);
    const sorted = this.#changes.part(0, end).sorted();
    const { folder, limits } = this.options;
    const newest = await writeSortedFile(folder, `outputs-${base + 1}-${height}.sorted`, [sorted], sorted.length, limits);
    const outputs = await this.#merge([...this.#state.outputs, newest], height);
    const mints = new Map(this.#mints);
    subtractMints(mints, later);
    const state: LedgerState = { ...this.#state, base: height, base_hash: hash, outputs, mints: mintsText(mints) };
    writeState(folder, state);
    const files = this.#open(outputs);
    this.close();
    [this.#state, this.#files, this.#blocks] = [state, files, later.map((block) => ({ ...block, end: block.end - end }))];
    this.#changes = this.#changes.part(end, this.#changes.size);
    removeOthers(folder, state);
  }

  close(): void {
    for (const file of this.#files) file.close();
  }

  /** Merges the newest file with older files that are not much larger. Returns all files afterwards. */
  async #merge(all: readonly SortedFacts[], last: number): Promise<SortedFacts[]> {
    const { folder, limits } = this.options;
    let first = all.length - 1;
    let bytes = all[first]?.bytes ?? 0;
    for (; first > 0 && (all[first - 1]?.bytes ?? 0) < limits.mergeBelow * bytes; first--) bytes += all[first - 1]?.bytes ?? 0;
    if (first === all.length - 1) return [...all];
    countCrossing('mergeBelow');
    const some = all.slice(first);
    const [from] = /[0-9]+/.exec(some[0]?.name ?? '') ?? [];
    const most = some.reduce((sum, { entries }) => sum + entries, 0);
    const files = this.#open(some);
    try {
      const changes = merged(files, first === 0);
      return [...all.slice(0, first), await writeSortedFile(folder, `outputs-${from}-${last}.sorted`, [changes], most, limits)];
    } finally {
      for (const file of files) file.close();
    }
  }

  #open(all: readonly SortedFacts[]): SortedFile[] {
    const files: SortedFile[] = [];
    try {
      for (const facts of all) files.push(new SortedFile(this.options.folder, facts));
      return files;
    } catch (error) {
      for (const file of files) file.close();
      throw error;
    }
  }
}

function subtractMints(mints: Map<RuneId, number>, blocks: readonly AppliedBlock[]): void {
  for (const block of blocks) for (const [rune, count] of block.mints) mints.set(rune, (mints.get(rune) ?? 0) - count);
}

const mintsText = (mints: ReadonlyMap<RuneId, number>): string =>
  [...mints].flatMap(([rune, count]) => (count === 0 ? [] : `${rune}:${count}`)).join(' ');

const sha256Of = (state: unknown): string => createHash('sha256').update(JSON.stringify(state)).digest('hex');

/** Reads the state of the ledger in a folder, undefined if there is none. Throws a DamagedStateError. */
export function readState(folder: string): LedgerState | undefined {
  const path = join(folder, STATE_FILE);
  if (!existsSync(path)) return undefined;
  try {
    const file: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const { state, sha256 } = stateFile.parse(file);
    if (sha256 === sha256Of((file as StateFile).state)) return state;
  } catch (error) {
    throw new DamagedStateError(`${path} cannot be read: ${error instanceof z.ZodError ? misfitOf(error) : messageOf(error)}`);
  }
  throw new DamagedStateError(`${path} is damaged`);
}

/** Replaces the state, after a sync of the folder: the names of its files must be on the disk before it. */
function writeState(folder: string, state: LedgerState): void {
  mkdirSync(folder, { recursive: true });
  syncFolder(folder);
  replaceDurably(join(folder, STATE_FILE), JSON.stringify({ format: FORMAT, sha256: sha256Of(state), state } satisfies StateFile));
}

/** Removes the files that the state does not name: outdated files, and files of a killed pull. */
function removeOthers(folder: string, { outputs }: LedgerState): void {
  const own = new Set([STATE_FILE, UNCHECKED_FILE, ...outputs.map(({ name }) => name)]);
  for (const name of readdirSync(folder)) if (!own.has(name)) rmSync(join(folder, name), { recursive: true });
}
