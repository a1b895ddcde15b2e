/**
 * Pulls activity from a Bitcoin Core node: reads every block from the first one with runes on, because the activity of a block depends on
 * all earlier outputs, and writes rows to the folder `pulled`. A commit replaces the index of the rows. On disk, the ledger (in `.state`)
 * has only blocks that no reorganisation may replace. A start replays later blocks from their rows.
 */
import { join } from 'node:path';
import { count } from '../../cli/log.ts';
import type { BlockRange } from '../../duckdb/blockRanges.ts';
import { BuildError, InputError } from '../../errors.ts';
import { exceeds, type Limits } from '../../limits.ts';
import { commitIndex, EMPTY_INDEX, readIndex } from '../../rows/rowsFolder.ts';
import { HEIGHTS_PER_FILE, hundredOf } from '../../rows/rowsForm.ts';
import { indexBlock } from '../../runes/indexBlock.ts';
import type { LedgerRow } from '../../runes/ledgerRows.ts';
import { NETWORKS, type Network } from '../../runes/networks.ts';
import { DiskLedger, readState } from '../../unspent/diskLedger.ts';
import { checkNetwork, STATE_FOLDER, workFile } from '../pulledFiles.ts';
import type { PullOptions, PullResult, Tools } from '../pullOptions.ts';
import { ChainMovedError, type CheckedBlock, CheckedBlocks } from './checkedBlocks.ts';
import { areUnchecked, type Check, checkOutputs } from './checkOutputs.ts';
import { continueRows } from './continueRows.ts';
import type { BitcoinNode, ChainInfo } from './coreNode.ts';
import { hash256 } from './hash256.ts';
import { NodeFolder } from './nodeFolder.ts';
import { replayRows } from './replayRows.ts';
import { RowFiles } from './rowFiles.ts';

/** Longest time between two commits, in milliseconds. */
const MS_PER_COMMIT = 60_000;

/** Maximum number of times that the chain may change before the next block is read. Then the pull fails. */
const MOST_MOVES = 5;

export interface NodePullOptions extends PullOptions {
  readonly limits: Limits;
  /** True for an invented chain of mainnet, which begins with any block. Only for tests. No flag sets it. */
  readonly isInvented?: boolean;
  /** Outputs to compare with the node after a ledger was made from rows. Default: a sample. */
  readonly check?: Check | undefined;
}

export class NodePull {
  /** State of the node at the last call of `#announce`. `isBehind`: it has no new block, and lacks blocks that were pulled before. */
  #announced: { readonly isBehind: boolean; readonly isSyncing: boolean } | undefined;
  readonly #blocks: CheckedBlocks;
  /** Height of the node's last block when the node was last asked. */
  #tip = -1;
  #totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };

  private constructor(
    private readonly options: NodePullOptions,
    private readonly node: BitcoinNode,
    private readonly network: Network,
    private readonly ledger: DiskLedger,
    private readonly rows: RowFiles,
    private readonly kept: NodeFolder,
    private readonly tools: Tools,
  ) {
    this.#blocks = new CheckedBlocks(node, network, ledger, options.isInvented === true ? undefined : network.firstHash);
  }

  /**
   * Opens the ledger, or makes a lost one again from the rows; without settled rows, an empty one. Throws an InputError if it does not
   * match the node, the wanted blocks or the files, or the rows begin too late, and a DamagedStateError if it is damaged.
   */
  static async open(options: NodePullOptions, node: BitcoinNode, tools: Tools): Promise<NodePull> {
    const { folder, limits, confirmations, check = 'sample' } = options;
    const chain = await node.chain();
    const network = NETWORKS[chain.network];
    const { firstHeight } = network;
    const state = join(folder, STATE_FOLDER);
    const rows = new RowFiles(folder, tools.store);
    let [index, found] = [readIndex(folder), readState(state)];
    if (found === undefined && index !== undefined) {
      const continuing = { folder, index, network, chain, confirmations, check, limits };
      if (index.files.length > 0) await continueRows(continuing, node, rows, tools);
      [index, found] = [readIndex(folder), readState(state)];
      // Rows that are not continued may be of blocks that the node does not have.
      if (found === undefined) commitIndex(folder, EMPTY_INDEX, workFile(folder, '.json'));
    }
    checkNetwork(found?.network, chain.network, node.name, folder);
    const rowsFrom = firstWanted(options, found?.rows_from, firstHeight, chain.blocks);
    if (rowsFrom > firstHeight)
      tools.log.notice(
        `${folder} has rows from block ${rowsFrom} on: its builds have no balances, holders, outputs and counts of mints, which need all rows from block ${firstHeight} on`,
      );
    const ledger = new DiskLedger({ folder: state, network: chain.network, firstHeight, rowsFrom, limits });
    try {
      const ends = Math.max(limits.changesBlocks, confirmations);
      const kept = new NodeFolder(folder, (found && index) ?? EMPTY_INDEX, ledger, rows, ends);
      await replayRows(folder, kept.checked(), ledger, network, tools.store);
      return new NodePull(options, node, network, ledger, rows, kept, tools);
    } catch (error) {
      ledger.close();
      throw error;
    }
  }

  close(): void {
    this.ledger.close();
  }

  /** Reads all blocks up to the node's tip or the last wanted one. At the tip, compares outputs of a ledger that was made from rows. */
  async run(): Promise<PullResult> {
    this.#totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };
    const result = await this.#readAll();
    const { folder, concurrency, signal } = this.options;
    if (!areUnchecked(folder)) return result;
    if (this.ledger.height !== this.#tip) {
      this.tools.log.notice(`outputs of the rows are checked when a pull has reached the last block of ${this.node.name}`);
      return result;
    }
    const { network, ledger } = this;
    const catchUp = async () => {
      await this.#readAll();
      if (this.ledger.height !== this.#tip)
        throw new BuildError(
          `the last block of ${this.node.name} is not the last pulled block any more, so it cannot be asked for outputs`,
          ['Run the pull again when the node has this block again, and without an end of --blocks.'],
        );
    };
    await checkOutputs({ folder, network, ledger, concurrency, signal, catchUp }, this.node, this.tools);
    return this.#readAll();
  }

  async #readAll(): Promise<PullResult> {
    let moves = 0;
    for (let round = 0; ; round++) {
      const chain = await this.node.chain();
      this.#tip = chain.blocks;
      const last = Math.min(chain.blocks, this.options.wanted.to ?? Number.MAX_SAFE_INTEGER);
      const isBehind = this.#isBehind(chain);
      if (!isBehind) this.#totals.replaced += await this.kept.removeReplaced(this.node, this.options.confirmations);
      const { height } = this.ledger;
      if (round === 0 || isBehind) this.#announce(chain, last, isBehind);
      if (isBehind || height >= last) {
        const ends = isBehind ? undefined : await this.kept.findEnds(this.node);
        // The chain changed meanwhile, so the next round follows the change.
        if (!isBehind && ends === undefined) continue;
        const { from } = this.options.wanted;
        await this.kept.tidy(typeof from === 'object' ? lastBlocks(from.last, this.#tip) : 0, this.#settled);
        return { ...this.#totals, heights: this.kept.list(height, ends) };
      }
      try {
        await this.#read(chain, last);
      } catch (error) {
        if (!(error instanceof ChainMovedError)) throw error;
        moves = this.ledger.height > height ? 0 : moves + 1;
        if (moves < MOST_MOVES) continue;
        throw new BuildError(`the chain of ${this.node.name} changed ${MOST_MOVES} times before block ${height + 1} was read`, [
          'Check the node, then run the same command again: it continues from here.',
        ]);
      }
    }
  }

  /** Logs the blocks to read, up to `last`, on the first call; and whether the node has fallen behind or begun to sync since the last. */
  #announce({ blocks: tip, headers, isSyncing }: ChainInfo, last: number, isBehind: boolean): void {
    const { name } = this.node;
    const { height } = this.ledger;
    const { replaced } = this.#totals;
    const before = this.#announced;
    this.#announced = { isBehind, isSyncing };
    if (before === undefined) {
      const blocks = Math.max(last - height, 0);
      const todo = `${blocks === 0 ? 'nothing' : count(blocks, 'block')} to read${replaced === 0 ? '' : `, ${count(replaced, 'block')} replaced`}`;
      const fields = { source: name, tip, first: height + 1, last, blocks, replaced };
      this.tools.log.info('looked', `${name} has blocks up to ${tip}: ${todo}.`, fields);
    }
    if (isBehind && before?.isBehind !== true)
      this.tools.log.notice(`${name} is behind: its last block is ${tip}, and block ${height} was pulled before`);
    if (isSyncing && before?.isSyncing !== true) {
      const state = tip < headers ? `it has ${tip} of ${headers} blocks` : `its last block, ${tip}, is old`;
      this.tools.log.notice(`${name} is still syncing: ${state}. Run the pull again when it has more`);
    }
  }

  /** Reads blocks up to `last`. Throws a ChainMovedError if the chain changes meanwhile. */
  async #read(chain: ChainInfo, last: number): Promise<void> {
    const { confirmations, concurrency, limits, signal } = this.options;
    const { progress } = this.tools;
    const begin = this.ledger.height + 1;
    const settled = Math.min(chain.blocks - confirmations, last);
    let commit = { height: begin - 1, at: performance.now() };
    let unit = unitOf(begin, settled);
    progress.begin('read');
    try {
      for await (const checked of this.#blocks.read(last, concurrency)) {
        signal.throwIfAborted();
        const { height } = checked;
        this.#index(checked);
        progress.show(height - begin + 1, last - begin + 1, 'blocks');
        if (height < unit.last) continue;
        await this.rows.endFile(unit, this.ledger.rowsFrom);
        unit = unitOf(height + 1, settled);
        const isDue =
          exceeds(limits, 'blocksPerCommit', height - commit.height + 1) ||
          this.ledger.isSettleDue ||
          performance.now() - commit.at > MS_PER_COMMIT;
        if (!isDue && height < last) continue;
        await this.#commit(commit.height);
        commit = { height, at: performance.now() };
        // Near the tip, a build waits for the end of this pull, so the caller of run() calls settle() after the build. Blocks without rows
        // cannot be replayed.
        if (height <= settled && (this.ledger.isSettleDue || height < this.ledger.rowsFrom)) await this.settle();
      }
    } catch (error) {
      await this.rows.discard();
      this.ledger.rewind(commit.height);
      throw error;
    }
    progress.end();
  }

  #index({ height, block, previousOutput }: CheckedBlock): void {
    const { ledger, network, rows } = this;
    const emit = height < ledger.rowsFrom ? () => undefined : (row: LedgerRow) => rows.addRow(row);
    const changes = indexBlock(block, { height, network, ledger, hash256, previousOutput, emit });
    for (const { row } of changes.runes) rows.addRune(row);
    ledger.apply({ height, hash: block.hash }, changes);
  }

  /** Adds all finished files to the index. `before` is the height of the last commit. */
  async #commit(before: number): Promise<void> {
    const made = await this.rows.finished();
    this.kept.add(made);
    for (const [kind, { bytes, rows }] of made) {
      this.#totals.bytes += bytes;
      if (kind === 'files') this.#totals.records += rows;
    }
    this.#totals.blocks += this.ledger.height - before;
  }

  /** True if the node has no new block, and lacks some pulled blocks. */
  #isBehind({ blocks, bestHash }: ChainInfo): boolean {
    const { hash, height } = this.ledger;
    if (hash === undefined || blocks >= height) return false;
    return blocks < height - this.options.confirmations || this.ledger.hashAt(blocks) === bestHash;
  }

  get hasRows(): boolean {
    return this.ledger.height >= this.ledger.rowsFrom;
  }

  /** Height of the last settled block, which no reorganisation may replace. */
  get #settled(): number {
    return Math.min(this.#tip - this.options.confirmations, this.ledger.height);
  }

  /** Moves complete hundreds of settled blocks to disk, which may take a minute. */
  async settle(): Promise<void> {
    // After a fork inside a file of a hundred blocks, the ledger is rewound to the block before the file, and rewind() cannot go below
    // settled blocks.
    let last = hundredOf(this.#settled).first - 1;
    while (last > this.ledger.base && this.ledger.hashAt(last) === undefined) last -= HEIGHTS_PER_FILE;
    await this.ledger.settle(last);
  }
}

/** The heights that share a file with this height and later ones: up to the end of a hundred that is settled. */
const unitOf = (height: number, settled: number): BlockRange => {
  const { last } = hundredOf(height);
  return { first: height, last: last <= settled ? last : height };
};

/** First height of the last `last` blocks, rounded down to the first height of a file. */
const lastBlocks = (last: number, tip: number): number => hundredOf(Math.max(tip - last + 1, 0)).first;

/** First height whose rows the folder has after this pull: `found` if an earlier one wrote rows. Throws an InputError for a lower one. */
function firstWanted(
  { wanted, confirmations, folder }: NodePullOptions,
  found: number | undefined,
  firstHeight: number,
  tip: number,
): number {
  const { from } = wanted;
  if (from === undefined) return found ?? firstHeight;
  // Blocks that are not settled need rows, or else the next pull reads them again.
  const asked = Math.max(typeof from === 'number' ? from : lastBlocks(Math.max(from.last, confirmations + 1), tip), firstHeight);
  // The last N blocks begin below `found` if the node has fallen behind, which is no error.
  if (found === undefined || asked >= found || typeof from === 'object') return found ?? asked;
  throw new InputError(`--blocks asks for block ${asked}, but ${folder} has rows from block ${found} on`, [
    `Earlier pulls read the blocks before it without writing their rows. To write them, remove ${folder}: the next pull reads all blocks again.`,
  ]);
}
