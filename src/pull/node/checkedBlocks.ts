/**
 * Reads the blocks of a node in order, and fetches several in advance. Each block must follow the block before it, and
 * have the proof of work that its network requires.
 */
import { InputError } from '../../errors.ts';
import { type Commitment, commitmentsOf, type PreviousOutput } from '../../runes/indexBlock.ts';
import type { Network } from '../../runes/networks.ts';
import type { Block } from '../../runes/parseBlock.ts';
import { type DifficultyRules, PERIOD, WorkChecker, WorkError } from '../../runes/proofOfWork.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import type { BitcoinNode } from './coreNode.ts';
import { RecentTxids } from './recentTxids.ts';
import { ahead } from './workAhead.ts';

/** Thrown if the node's chain changes while blocks are read. */
export class ChainMovedError extends Error {}

export interface CheckedBlock {
  readonly height: number;
  readonly block: Block;
  /** Returns the output that an input spends. Only for inputs that may spend the commitment of an etching. */
  readonly previousOutput: (place: Commitment) => PreviousOutput;
}

export class CheckedBlocks {
  readonly #recent: RecentTxids;
  /** Checker of the proof of work after the ledger's last block. If the ledger was rewound, `read` makes a new one. */
  #work: WorkChecker | undefined;

  constructor(
    readonly node: BitcoinNode,
    readonly network: Network,
    readonly ledger: DiskLedger,
    readonly difficulty: DifficultyRules,
  ) {
    this.#recent = new RecentTxids((hash) => node.readBlock(hash));
  }

  /**
   * Yields the blocks above the ledger up to `last`. The caller applies each block to the ledger before the next one.
   * `concurrency` is the number of blocks that are fetched at the same time. Throws a ChainMovedError if the chain
   * changes meanwhile. Throws an InputError if a block has less work than its network requires, or belongs to another
   * chain.
   */
  async *read(last: number, concurrency: number): AsyncGenerator<CheckedBlock, void, undefined> {
    const begin = this.ledger.height + 1;
    if (this.#work === undefined || this.#work.hash !== this.ledger.hash) this.#work = await this.#workBefore(begin);
    const work = this.#work;
    for await (const checked of ahead(begin, last, concurrency, (height) => this.#fetch(height))) {
      const { height, block } = checked;
      if (block.previous !== (this.ledger.hash ?? work.hash ?? block.previous)) throw new ChainMovedError();
      this.#checkWork(height, block, work);
      yield checked;
    }
  }

  /** Fetches a block, and the outputs that may be commitments of its etchings. */
  async #fetch(height: number): Promise<CheckedBlock> {
    const reading = this.#readBlock(height);
    this.#recent.add(height, reading);
    const block = await reading;
    const wanted = commitmentsOf(block, { height, network: this.network, ledger: this.ledger });
    const outputs = await this.node.previousOutputs(block, height, wanted, this.#recent.finder(block, height));
    const found = new Map(wanted.map((place, i) => [keyOf(place), outputs[i]]));
    const previousOutput = (place: Commitment) => {
      const output = found.get(keyOf(place));
      if (output === undefined) throw new Error(`block ${height}: a spent output was not fetched`);
      return output;
    };
    return { height, block, previousOutput };
  }

  async #readBlock(height: number): Promise<Block> {
    const hash = await this.node.hashAt(height);
    if (hash === undefined) throw new ChainMovedError();
    return this.node.readBlock(hash);
  }

  /** Returns a checker that has read the headers from the beginning of the difficulty period up to `height - 1`. */
  async #workBefore(height: number): Promise<WorkChecker> {
    const work = new WorkChecker(this.difficulty);
    if (!this.difficulty.retargets || height === 0) return work;
    const first = height - 1 - ((height - 1) % PERIOD);
    for (const [i, header] of (await this.node.headers(first, height - 1)).entries()) {
      if (header.previous !== (work.hash ?? header.previous)) throw new ChainMovedError();
      work.add(first + i, header);
    }
    if (work.hash !== (this.ledger.hash ?? work.hash)) throw new ChainMovedError();
    return work;
  }

  #checkWork(height: number, block: Block, work: WorkChecker): void {
    const { firstHash } = this.difficulty;
    const what = `block ${height} of ${this.node.name} (${block.hash})`;
    const advice = ['Check --from: no node of this network accepts this block. The blocks before it are kept.'];
    if (height === this.network.firstHeight && firstHash !== undefined && block.hash !== firstHash)
      throw new InputError(`${what} is of another chain: its hash should be ${firstHash}`, advice);
    try {
      work.check(height, block);
    } catch (error) {
      throw error instanceof WorkError ? new InputError(`${what} has no valid proof of work: ${error.message}`, advice) : error;
    }
  }
}

const keyOf = ({ transaction, input }: Commitment): string => `${transaction}:${input}`;
