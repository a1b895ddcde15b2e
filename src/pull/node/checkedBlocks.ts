/**
 * Reads the blocks of a node in order, and fetches several in advance. Each block must follow the block before it.
 */
import { InputError } from '../../errors.ts';
import { type Commitment, commitmentsOf, type PreviousOutput } from '../../runes/indexBlock.ts';
import type { Network } from '../../runes/networks.ts';
import type { Block } from '../../runes/parseBlock.ts';
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

  constructor(
    readonly node: BitcoinNode,
    readonly network: Network,
    readonly ledger: DiskLedger,
    /** Hash of the first block with runes. Undefined if any block may be the first. */
    readonly firstHash: string | undefined,
  ) {
    this.#recent = new RecentTxids((hash) => node.readBlock(hash));
  }

  /**
   * Yields the blocks above the ledger up to `last`. The caller applies each block to the ledger before the next one.
   * `concurrency` is the number of blocks that are fetched at the same time. Throws a ChainMovedError if the chain
   * changes meanwhile. Throws an InputError if the first block with runes belongs to another chain.
   */
  async *read(last: number, concurrency: number): AsyncGenerator<CheckedBlock, void, undefined> {
    const begin = this.ledger.height + 1;
    for await (const checked of ahead(begin, last, concurrency, (height) => this.#fetch(height))) {
      const { height, block } = checked;
      if (block.previous !== (this.ledger.hash ?? block.previous)) throw new ChainMovedError();
      if (height === this.network.firstHeight && block.hash !== (this.firstHash ?? block.hash))
        throw new InputError(
          `block ${height} of ${this.node.name} (${block.hash}) is of another chain: its hash should be ${this.firstHash}`,
          ['Check --from: no node of this network has this block.'],
        );
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
    return this.node.readBlock(hash, height);
  }
}

const keyOf = ({ transaction, input }: Commitment): string => `${transaction}:${input}`;
