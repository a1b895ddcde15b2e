/**
 * Pulls activity from a Bitcoin Core node: reads its blocks, applies the rules of runes, and writes the rows to the
 * folder `pulled`. Unlike other sources it reads every block from the first one with runes on, because a block's
 * activity depends on all outputs before it. What later blocks need is kept in the subfolder `.state`.
 *
 * The order of writing makes a pull that is killed continue without a trace: runes, rows, then the ledger's journal.
 * Rows above the ledger's height are made anew.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { count, type Log } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import { BuildError, InputError } from '../../errors.ts';
import { CHECKSUM_ENDING } from '../../input/checksums.ts';
import type { Block } from '../../runes/block.ts';
import { hashText } from '../../runes/bytes.ts';
import { type Commitment, commitmentsOf, indexBlock, type PreviousOutput } from '../../runes/indexBlock.ts';
import { NETWORKS } from '../../runes/networks.ts';
import type { Store } from '../../store/duckdb.ts';
import { DiskLedger, readLedgerState } from '../../unspent/diskLedger.ts';
import { originsOf, updateBlocksFile } from '../blocksFile.ts';
import type { Heights } from '../heights.ts';
import type { WantedBlocks } from '../plan.ts';
import type { PullResult } from '../pull.ts';
import { hundredOf, listPulledFiles, type PulledFile, RUNES_FILE } from '../pulledFiles.ts';
import { allBy } from '../source.ts';
import { removeFiles } from '../write.ts';
import { ahead } from './ahead.ts';
import { checkNetwork, explained, firstWanted, isParquet, lastBlocks, lost } from './folderChecks.ts';
import { hash256 } from './hash256.ts';
import { knownRunes } from './knownRunes.ts';
import type { BitcoinNode, ChainInfo } from './node.ts';
import { RowFiles } from './rowFiles.ts';

/** Subfolder of `pulled` for the ledger of unspent outputs. Builds ignore it. */
export const STATE_FOLDER = '.state';

/** Most blocks between two commits, and the time after which an earlier one is made, in milliseconds. */
const BLOCKS_PER_COMMIT = 1000;
const MS_PER_COMMIT = 60_000;

/** How often the chain may change before a block is read. */
const MOST_MOVES = 5;

export interface NodePullOptions {
  readonly folder: string;
  readonly wanted: WantedBlocks;
  /** The deepest reorganisation that is followed, in blocks. Blocks below are settled. */
  readonly confirmations: number;
  /** Blocks that are fetched ahead. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/** A block of the chain moved while it was read: the chain is looked at again. */
class ChainMoved extends Error {}

/** A block that was fetched, with the outputs that its etchings refer to. */
interface FetchedBlock {
  readonly height: number;
  readonly block: Block;
  readonly previous: ReadonlyMap<string, PreviousOutput>;
}

export class NodePull {
  readonly #options: NodePullOptions;
  readonly #node: BitcoinNode;
  readonly #ledger: DiskLedger;
  readonly #files: RowFiles;
  readonly #log: Log;
  readonly #network: (typeof NETWORKS)[keyof typeof NETWORKS];
  #isAnnounced = false;
  #wasBehind = false;
  #wasSyncing = false;
  /** Height of the node's last block, at the last look. */
  #tip = -1;
  #totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };

  private constructor(options: NodePullOptions, node: BitcoinNode, ledger: DiskLedger, chain: ChainInfo, store: Store, log: Log) {
    this.#options = options;
    this.#node = node;
    this.#ledger = ledger;
    this.#files = new RowFiles(options.folder, store);
    this.#log = log;
    this.#network = NETWORKS[chain.network];
  }

  /** Opens the state of the folder. Throws an InputError when it does not fit the node, the range or the pulled files. */
  static async open(options: NodePullOptions, node: BitcoinNode, store: Store, log: Log): Promise<NodePull> {
    const { folder } = options;
    const chain = await node.chain();
    const { firstHeight } = NETWORKS[chain.network];
    const state = join(folder, STATE_FOLDER);
    try {
      const found = readLedgerState(state);
      checkNetwork(found?.network, chain, node.name, folder);
      if (found === undefined && listPulledFiles(folder).length > 0) {
        if (originsOf(folder).includes('ord')) throw lost(`${state} is missing`, folder);
        throw new InputError(`${folder} has blocks of another source`, [
          `Blocks from a node do not continue them. Give another folder with --to, or remove ${folder}.`,
        ]);
      }
      const rowsFrom = firstWanted(options.wanted, { found: found?.rowsFrom, firstHeight, tip: chain.blocks, folder });
      const runes = await knownRunes(folder, store);
      const ledger = DiskLedger.open({ folder: state, network: chain.network, firstHeight, rowsFrom, runes });
      const pull = new NodePull(options, node, ledger, chain, store, log);
      try {
        pull.#checkFiles();
        if (runes.some((rune) => rune.height > ledger.height)) pull.#files.hasOldRunes = true;
      } catch (error) {
        ledger.close();
        throw error;
      }
      return pull;
    } catch (error) {
      throw explained(error, folder);
    }
  }

  close(): void {
    this.#ledger.close();
  }

  /** Reads all blocks up to the node's tip, or the last wanted one. */
  async run(progress: Progress): Promise<PullResult> {
    this.#totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };
    try {
      let moves = 0;
      for (let round = 0; ; round++) {
        const chain = await this.#node.chain();
        this.#tip = chain.blocks;
        const last = Math.min(chain.blocks, this.#options.wanted.to ?? Number.MAX_SAFE_INTEGER);
        const isBehind = !(await this.#rewindTo(chain));
        if (round === 0) this.#announce(chain, last, isBehind);
        if (isBehind || this.#ledger.height >= last) {
          await this.#tidy();
          return { ...this.#totals, heights: this.#list(this.#ledger.height) };
        }
        const before = this.#ledger.height;
        if (chain.firstStored > before + 1) {
          throw new InputError(`${this.#node.name} has pruned block ${before + 1}: its first block is ${chain.firstStored}`, [
            'Set prune=0 in bitcoin.conf and let the node download its blocks again, or use another node.',
          ]);
        }
        try {
          await this.#read(chain, last, progress);
        } catch (error) {
          if (!(error instanceof ChainMoved)) throw error;
          moves = this.#ledger.height > before ? 0 : moves + 1;
          if (moves < MOST_MOVES) continue;
          throw new BuildError(`the chain of ${this.#node.name} changed ${MOST_MOVES} times before block ${before + 1} was read`, [
            'Check the node, then run the same command again: it continues from here.',
          ]);
        }
      }
    } catch (error) {
      throw explained(error, this.#options.folder);
    }
  }

  /** Reads blocks up to `last`. Throws a ChainMoved error when the chain changes meanwhile. */
  async #read(chain: ChainInfo, last: number, progress: Progress): Promise<void> {
    const { confirmations, concurrency, signal } = this.#options;
    const begin = this.#ledger.height + 1;
    const settled = Math.min(chain.blocks - confirmations, last);
    let commit = { height: begin - 1, at: performance.now() };
    let unit = this.#unitOf(begin, begin, settled);
    progress.begin('read');
    try {
      for await (const { height, block, previous } of ahead(begin, last, concurrency, (next) => this.#fetch(next))) {
        signal.throwIfAborted();
        if (this.#ledger.hash !== undefined && block.previous !== this.#ledger.hash) throw new ChainMoved();
        this.#index(height, block, previous);
        progress.show(height - begin + 1, last - begin + 1, 'blocks');
        if (height < unit.last) continue;
        if (unit.last >= this.#ledger.rowsFrom) await this.#files.endFile(unit);
        unit = this.#unitOf(height + 1, begin, settled);
        const isDue =
          this.#ledger.isSyncDue || height - commit.height >= BLOCKS_PER_COMMIT || performance.now() - commit.at > MS_PER_COMMIT;
        if (!isDue && height < last) continue;
        await this.#commit(commit.height);
        commit = { height, at: performance.now() };
        // Near the tip a build waits for this pull, so the ledger is settled after it.
        if (height <= settled) await this.settle();
      }
    } catch (error) {
      await this.#files.discard();
      this.#ledger.rewind(commit.height);
      throw error;
    }
    progress.end();
  }

  /** Fetches and checks a block, and what its etchings refer to. */
  async #fetch(height: number): Promise<FetchedBlock> {
    const hash = await this.#node.hashAt(height);
    if (hash === undefined) throw new ChainMoved();
    const block = await this.#node.readBlock(hash);
    const wanted = commitmentsOf(block, { height, network: this.#network, ledger: this.#ledger });
    const places = wanted.map(({ transaction, input }) => ({ txid: hashText(block.txids, 32 * transaction), input }));
    const outputs = places.length === 0 ? [] : await this.#node.previousOutputs({ hash }, places);
    const previous = new Map(wanted.flatMap((place, i) => (outputs[i] ? [[keyOf(place), outputs[i]] as const] : [])));
    return { height, block, previous };
  }

  /** Applies the next block to the ledger, and adds its rows to the open file. */
  #index(height: number, block: Block, previous: ReadonlyMap<string, PreviousOutput>): void {
    const ledger = this.#ledger;
    const isWritten = height >= ledger.rowsFrom;
    const changes = indexBlock(block, {
      height,
      network: this.#network,
      ledger,
      hash256,
      previousOutput: (place) => {
        const output = previous.get(keyOf(place));
        if (output === undefined) throw new Error(`block ${height}: a spent output was not fetched`);
        return output;
      },
      emit: (row) => {
        if (isWritten) this.#files.addRow(row);
      },
    });
    for (const { row } of changes.runes) this.#files.addRune(row);
    ledger.apply({ height, hash: block.hash }, changes);
  }

  /**
   * Returns the blocks of the file that a height belongs to: a whole hundred if it is settled and this run reads all of
   * it, else the one block. `begin` is the first height that this run reads.
   */
  #unitOf(height: number, begin: number, settled: number): Heights {
    const hundred = hundredOf(height);
    const whole = { ...hundred, first: Math.max(hundred.first, this.#ledger.rowsFrom) };
    return begin <= whole.first && whole.last <= settled ? whole : { first: height, last: height };
  }

  /** Puts all finished files in place and the ledger on the disk. `before` is the last height of the commit before. */
  async #commit(before: number): Promise<void> {
    for (const { bytes, rows } of await this.#files.putInPlace(before)) {
      this.#totals.bytes += bytes;
      this.#totals.records += rows;
    }
    this.#ledger.sync();
    this.#totals.blocks += this.#ledger.height - before;
  }

  /**
   * Removes the blocks that the node's chain does not have. Returns false when the node is behind: it has only blocks
   * that were read. Throws an InputError for a reorganisation that is too deep.
   */
  async #rewindTo(chain: ChainInfo): Promise<boolean> {
    const ledger = this.#ledger;
    const { confirmations, folder } = this.#options;
    if (ledger.hash === undefined) return true;
    const known = [...ledger.blocks];
    const top = ledger.height;
    if (chain.blocks < top - confirmations) return false;
    if (chain.blocks === ledger.base && chain.bestHash === ledger.baseHash && chain.blocks < top) return false;
    if (chain.blocks < top && known.some(({ height, hash }) => height === chain.blocks && hash === chain.bestHash)) return false;
    let fork: number | undefined;
    for (let i = known.length - 1; i >= 0 && fork === undefined; i--) {
      const block = known[i];
      if (block && (await this.#node.hashAt(block.height)) === block.hash) fork = block.height;
      else if (block && top - block.height >= confirmations) break;
    }
    // Before the first block there is nothing to compare.
    const isBase = async () => ledger.baseHash === undefined || (await this.#node.hashAt(ledger.base)) === ledger.baseHash;
    if (fork === undefined && (await isBase())) fork = ledger.base;
    // A file that has the fork in its middle must be read anew whole.
    const across = fork === undefined ? undefined : this.#pulled().find(({ first, last }) => first <= (fork ?? 0) && (fork ?? 0) < last);
    const to = across === undefined ? fork : across.first - 1;
    if (to === top) return true;
    if (to === undefined || to < ledger.base || top - to > confirmations) {
      throw new InputError(
        `${this.#node.name} has another chain: it replaced more than the last ${confirmations} of the blocks that were read, up to ${top}`,
        [`Check --from. If the node is right, remove ${folder}: the next pull reads all blocks again.`],
      );
    }
    this.#totals.replaced += top - to;
    this.#list(to);
    ledger.rewind(to);
    this.#files.hasOldRunes = true;
    this.#remove(this.#pulled().filter(({ last }) => last > to));
    return true;
  }

  /** Lists the blocks up to a height as read, before the files of later ones are removed. Returns their range. */
  #list(height: number): Heights[] {
    const { rowsFrom } = this.#ledger;
    const heights = rowsFrom <= height ? [{ first: rowsFrom, last: height }] : [];
    updateBlocksFile(this.#options.folder, allBy('ord'), heights, heights);
    return heights;
  }

  /** Joins settled files of one block, and removes files below the wanted last blocks. */
  async #tidy(): Promise<void> {
    const { folder, wanted } = this.#options;
    if (this.#files.hasOldRunes) await this.#files.putInPlace(this.#ledger.height);
    this.#trim();
    const byHundred = new Map<number, PulledFile[]>();
    for (const file of this.#pulled()) {
      const { first: start } = hundredOf(file.first);
      byHundred.set(start, [...(byHundred.get(start) ?? []), file]);
    }
    for (const [start, files] of byHundred) {
      const heights = { first: Math.max(start, this.#ledger.rowsFrom), last: hundredOf(start).last };
      if (heights.last > this.#settled || files.length === 1) continue;
      const whole = files.find(({ first, last }) => first === heights.first && last === heights.last);
      const parts = files.filter((file) => file !== whole);
      // Parts are removed once the checksum of the joined file is beside it.
      const isComplete = parts.reduce((sum, { first, last }) => sum + last - first + 1, 0) === heights.last - heights.first + 1;
      if (isComplete && !(whole && existsSync(join(folder, `${whole.path}${CHECKSUM_ENDING}`)))) await this.#files.join(parts, heights);
      this.#remove(parts);
    }
    if (typeof wanted.from !== 'object') return;
    const first = lastBlocks(wanted.from.last, this.#tip);
    if (first <= this.#ledger.rowsFrom) return;
    this.#ledger.keepRowsFrom(first);
    this.#list(this.#ledger.height);
    this.#trim();
  }

  /** Removes files below the first block whose rows are kept. */
  #trim(): void {
    this.#remove(this.#pulled().filter(({ last }) => last < this.#ledger.rowsFrom));
  }

  /** True when the folder has files of rows. */
  get hasRows(): boolean {
    return this.#ledger.height >= this.#ledger.rowsFrom;
  }

  /** The last block that was read and that no reorganisation can replace. */
  get #settled(): number {
    return Math.min(this.#tip - this.#options.confirmations, this.#ledger.height);
  }

  /** Moves settled blocks from a long journal to sorted files, which may take a minute. */
  async settle(): Promise<void> {
    if (!this.#ledger.isJournalLong) return;
    // Files of a hundred blocks are never cut by a reorganisation, so neither is the ledger.
    try {
      await this.#ledger.settle(hundredOf(this.#settled).first - 1);
    } catch (error) {
      throw explained(error, this.#options.folder);
    }
  }

  /** Throws an InputError when a file of a block in the ledger is missing or damaged. Removes files above the ledger. */
  #checkFiles(): void {
    const { folder } = this.#options;
    const { rowsFrom, base } = this.#ledger;
    // A damaged journal is cut off, perhaps in the middle of a file.
    const across = this.#pulled().find(({ first, last }) => first <= this.#ledger.height && this.#ledger.height < last);
    if (across !== undefined && across.first > base) this.#ledger.rewind(across.first - 1);
    const { height } = this.#ledger;
    const runes = join(folder, RUNES_FILE);
    if (this.#ledger.hash !== undefined && !existsSync(runes)) throw lost(`${runes} is missing`, folder);
    let next = rowsFrom;
    for (const { path, first, last } of this.#pulled()) {
      if (first <= next && last <= height) {
        if (!isParquet(join(folder, path))) throw lost(`${join(folder, path)} is damaged`, folder);
        next = Math.max(next, last + 1);
      }
    }
    if (next <= height) throw lost(`${folder} has no file of block ${next}, which was pulled before`, folder);
    const above = this.#pulled().filter((file) => file.last > height);
    if (above.length > 0) this.#list(height);
    this.#remove(above);
  }

  /** Says at the first run what is to do, and at every run what keeps the node from being the whole truth. */
  #announce(chain: ChainInfo, last: number, isBehind: boolean): void {
    const { name } = this.#node;
    const { height } = this.#ledger;
    const { replaced } = this.#totals;
    const blocks = Math.max(last - height, 0);
    const todo = `${blocks === 0 ? 'nothing' : count(blocks, 'block')} to read${replaced === 0 ? '' : `, ${count(replaced, 'block')} replaced`}`;
    if (!this.#isAnnounced) {
      const fields = { source: name, tip: chain.blocks, first: height + 1, last, blocks, replaced };
      this.#log.info('looked', `${name} has blocks up to ${chain.blocks}: ${todo}.`, fields);
    }
    this.#isAnnounced = true;
    if (isBehind && !this.#wasBehind)
      this.#log.notice(`${name} is behind: its last block is ${chain.blocks}, and block ${height} was pulled before`);
    if (chain.isSyncing && !this.#wasSyncing)
      this.#log.notice(`${name} is still syncing: it has ${chain.blocks} of ${chain.headers} blocks. Run the pull again when it has more`);
    this.#wasBehind = isBehind;
    this.#wasSyncing = chain.isSyncing;
  }

  #pulled(): PulledFile[] {
    return listPulledFiles(this.#options.folder);
  }

  #remove(files: readonly PulledFile[]): void {
    // From the last to the first, so that what stays has no gap.
    removeFiles(this.#options.folder, [...files].reverse());
  }
}

const keyOf = ({ transaction, input }: Commitment): string => `${transaction}:${input}`;
