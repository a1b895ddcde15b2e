/**
 * Verifies balances and holders: makes all their documents again from the records of the blocks and from the etchings, as
 * a full build does, and compares them with those of the archive.
 */
import { closeSync, existsSync, openSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { type BalanceForm, writeBalances } from '../archiver/balances.ts';
import { makeListedRecords, planLevels } from '../archiver/listedRecords.ts';
import { ChangedArchiveError, type StoredArchive } from '../archiver/storedArchive.ts';
import type { Manifest } from '../contract/schemas.ts';
import { messageOf } from '../errors.ts';
import { listEtchings } from '../etchings/facts.ts';
import { exceeds, type Limits } from '../limits.ts';
import { archivePath } from '../pages/paths.ts';
import type { Dialect } from '../pages/site.ts';
import { State } from '../state/state.ts';
import type { Store } from '../store/duckdb.ts';
import { readLines } from '../store/files.ts';
import { writeAll } from '../write/lineFile.ts';
import type { ArchiveVerification } from './archive.ts';
import type { Activity } from './blocks.ts';
import { ComparedLevel } from './comparedLevel.ts';
import type { EtchingsVerification } from './etchings.ts';
import type { Findings } from './findings.ts';
import { loadReceived, makeReceived, receivedLine, verifyOutputs } from './outputs.ts';
import type { ScratchStore } from './scratchStore.ts';

const CHANGES: ReadonlySet<string> = new Set(['receive', 'send', 'burn']);

export class BalancesVerification {
  readonly #archive: StoredArchive;
  readonly #tip: number;
  readonly #limits: Limits;
  readonly #findings: Findings;
  readonly #scratch: string;
  readonly #store: Store;
  readonly #file: string;
  readonly #received: string;
  /** Removes the prefix of hashes in this dialect. */
  readonly #unprefixed: (hex: string) => string;
  /** Lines that are not loaded yet. */
  #lines = 0;

  private constructor(
    { archive, tip }: ArchiveVerification,
    dialect: Dialect,
    limits: Limits,
    { store, folder }: ScratchStore,
    findings: Findings,
  ) {
    this.#archive = archive;
    this.#tip = tip;
    this.#limits = limits;
    this.#findings = findings;
    this.#scratch = folder;
    this.#store = store;
    this.#file = join(folder, 'changes.ndjson');
    this.#received = join(folder, 'received.ndjson');
    this.#unprefixed = (hex) => (dialect === 'contract' ? hex.replace(/^0x/, '') : hex);
  }

  /** Returns undefined for an output without balances. */
  static async of(
    archive: ArchiveVerification | undefined,
    { lists, dialect }: Manifest,
    scratch: ScratchStore,
    limits: Limits,
    findings: Findings,
  ): Promise<BalancesVerification | undefined> {
    const tables = archive?.archive.root.lists;
    if (archive === undefined || tables === undefined) return undefined;
    const hasCounts = lists?.etchings?.counts === true && tables.activity !== undefined;
    if ((tables.balances !== undefined) !== hasCounts)
      findings.add(`${archivePath(archive.archive.name.root)} ${hasCounts ? 'lacks' : 'has'} balances, against the rule`);
    if (tables.balances === undefined) return undefined;
    const { store } = scratch;
    const state = await State.attach(store, undefined, {}, undefined);
    await state.begin();
    await makeListedRecords(store);
    await makeReceived(store);
    return new BalancesVerification(archive, dialect, limits, scratch, findings);
  }

  /** Adds the records of a block. */
  async add(height: number, records: readonly Activity[]): Promise<void> {
    const lines = records
      .filter(({ address, operation }) => address !== undefined && CHANGES.has(operation))
      .map(({ rune, address, operation, amount }) => `${JSON.stringify({ height, rune: rune.id, address, operation, amount })}\n`);
    append(this.#file, lines);
    this.#lines += lines.length;
    if (this.#archive.root.lists?.outputs !== undefined) {
      const received = records
        .filter(({ operation, location }) => operation === 'receive' && location.vout !== undefined)
        .map((record) => receivedLine(record, this.#unprefixed));
      append(this.#received, received);
      // An output without an address has only this line.
      this.#lines += received.length;
    }
    if (exceeds(this.#limits, 'linesPerLoad', this.#lines)) await this.#load();
  }

  async #load(): Promise<void> {
    if (this.#lines === 0) return;
    const columns = `height: 'BIGINT', rune: 'VARCHAR', address: 'VARCHAR', operation: 'VARCHAR', amount: 'VARCHAR'`;
    await this.#store.run(`INSERT INTO listed_records (block_height, rune_id, address, operation, amount)
      SELECT height, rune, address, operation, amount FROM ${readLines(this.#file, columns)}`);
    truncateSync(this.#file);
    this.#lines = 0;
    if (!existsSync(this.#received)) return;
    await loadReceived(this.#received, this.#store);
    truncateSync(this.#received);
  }

  /** Compares all documents, after the records of all blocks were added. `etchings` are those of the output. */
  async finish(etchings: EtchingsVerification | undefined): Promise<void> {
    const { lists, objectSize } = this.#archive.root;
    const balances = lists?.balances;
    if (balances === undefined) return;
    const name = archivePath(this.#archive.name.root);
    if (lists?.tip !== this.#tip) {
      this.#findings.add(`${name} has lists up to block ${lists?.tip}, expected ${this.#tip}`);
      return;
    }
    const before = this.#findings.count;
    await this.#load();
    if (etchings !== undefined) await this.#loadRunes(etchings);
    const blocks = {
      spooled: new Map(),
      replaced: new Set<number>(),
      tip: this.#tip,
      lowest: lists.lowest,
      objectSize,
      limits: { ...this.#limits, listPage: lists.page, listLevels: lists },
    };
    const form: BalanceForm = {
      tip: this.#tip,
      limits: blocks.limits,
      old: undefined,
      scratch: this.#scratch,
      writer: (kind, range) => new ComparedLevel(WHAT[kind], range, balances[kind], this.#archive, this.#findings),
    };
    try {
      const expected = await writeBalances(planLevels(blocks, undefined), form, this.#store);
      if (this.#findings.count === before && JSON.stringify(expected) !== JSON.stringify(balances))
        this.#findings.add(`${name} has other levels of balances, or other unbalanced runes, than a build makes`);
      if (this.#findings.count === before && lists.outputs !== undefined)
        await verifyOutputs(lists, lists.outputs, blocks.limits, this.#archive, this.#scratch, this.#findings, this.#store);
    } catch (error) {
      if (!(error instanceof ChangedArchiveError)) throw error;
      this.#findings.add(messageOf(error).replace('was changed since the last build', 'is missing or damaged'));
    }
  }

  /** Makes the tables of runes and etchings. */
  async #loadRunes(etchings: EtchingsVerification): Promise<void> {
    const rows: (string | number)[][] = [];
    for await (const one of etchings.all())
      rows.push([one.id, one.number, one.name, one.spaced_name, one.divisibility, one.block_height, one.tx_index]);
    await this.#store.append(
      'read_runes',
      {
        id: 'VARCHAR',
        number: 'BIGINT',
        name: 'VARCHAR',
        spaced_name: 'VARCHAR',
        divisibility: 'BIGINT',
        block_height: 'BIGINT',
        tx_index: 'BIGINT',
      },
      rows,
    );
    await this.#store.run(`INSERT INTO state.runes (id, number, name, spaced_name, divisibility, block_height, tx_index) FROM read_runes;
      INSERT INTO state.tip (block_height) VALUES (${this.#tip})`);
    await listEtchings('etchings', this.#store);
  }
}

function append(file: string, lines: readonly string[]): void {
  const handle = openSync(file, 'a');
  try {
    writeAll(handle, Buffer.from(lines.join('')));
  } finally {
    closeSync(handle);
  }
}

const WHAT = { addresses: 'balances of the address', holders: 'holders of the rune with the ordinal' } as const;
