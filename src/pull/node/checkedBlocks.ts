/**
 * Reads the blocks of a node in order, and fetches several in advance. Each block must follow the block before it. Keeps the transaction
 * ids of the last blocks, so that a pull need not ask the node which outputs are too young to be the commitment to a name.
 */
import { InputError } from '../../errors.ts';
import { CONFIRMATIONS, type Commitment, commitmentsOf, type PreviousOutput } from '../../runes/indexBlock.ts';
import type { Network } from '../../runes/networks.ts';
import type { Block } from '../../runes/parseBlock.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import { type BitcoinNode, NO_BLOCK, outpointAt } from './coreNode.ts';

/** Number of blocks, from the etching's block backwards, whose outputs are too young to be the etching's commitment. */
const TOO_YOUNG = CONFIRMATIONS - 1;

/** Thrown if the node's chain changes while blocks are read. */
export class ChainMovedError extends Error {}

export interface CheckedBlock {
  readonly height: number;
  readonly block: Block;
  /**
   * Returns the output that an input spends. Only for inputs that may spend the commitment of an etching. The height of an output that is
   * old enough for a commitment is the highest one that is.
   */
  readonly previousOutput: (place: Commitment) => PreviousOutput;
}

/** `scripts` has what inputs spend, by transaction and input: only those that may spend a commitment. */
type FetchedBlock = Pick<CheckedBlock, 'height' | 'block'> & { readonly scripts: ReadonlyMap<string, Uint8Array> };

export class CheckedBlocks {
  /** The last blocks that were read, newest first. */
  #recent: ReturnType<typeof linkOf>[] = [];

  constructor(
    readonly node: BitcoinNode,
    readonly network: Network,
    readonly ledger: DiskLedger,
    /** Hash of the first block with runes. Undefined if any block may be the first. */
    readonly firstHash: string | undefined,
  ) {}

  /**
   * Yields the blocks above the ledger up to `last`; fetches `concurrency` at the same time. The caller applies each to the ledger before
   * the next. Throws a ChainMovedError if the chain changes, and an InputError if the first block with runes is of another chain.
   */
  async *read(last: number, concurrency: number): AsyncGenerator<CheckedBlock, void, undefined> {
    const fetching: Promise<FetchedBlock>[] = [];
    let next = this.ledger.height + 1;
    for (;;) {
      for (; next <= last && fetching.length < concurrency; next++) {
        const fetched = this.#fetch(next);
        // `await turn` throws the error later. Until then, the error must not count as an unhandled rejection.
        fetched.catch(() => undefined);
        fetching.push(fetched);
      }
      const turn = fetching.shift();
      if (turn === undefined) return;
      const { height, block, scripts } = await turn;
      if (block.previous !== (this.ledger.hash ?? block.previous)) throw new ChainMovedError();
      if (height === this.network.firstHeight && block.hash !== (this.firstHash ?? block.hash))
        throw new InputError(
          `block ${height} of ${this.node.name} (${block.hash}) is of another chain: its hash should be ${this.firstHash}`,
          ['Check --from: no node of this network has this block.'],
        );
      await this.#addRecent(block, scripts.size > 0);
      const previousOutput = (place: Commitment) => {
        const script = scripts.get(keyOf(place));
        if (script === undefined) throw new Error(`block ${height}: a spent output was not fetched`);
        const at = outpointAt(block, place);
        const age = this.#recent.findIndex(({ txids }) => hasId(txids, block.bytes.subarray(at, at + 32)));
        return { script, height: height - (age < 0 ? TOO_YOUNG : age) };
      };
      yield { height, block, previousOutput };
    }
  }

  async #fetch(height: number): Promise<FetchedBlock> {
    const hash = await this.node.hashAt(height);
    if (hash === undefined) throw new ChainMovedError();
    const block = await this.node.readBlock(hash, height);
    const wanted = commitmentsOf(block, { height, network: this.network, ledger: this.ledger });
    const scripts = await this.node.spentScripts(block, wanted);
    return { height, block, scripts: new Map(wanted.map((place, i) => [keyOf(place), scripts[i] ?? new Uint8Array()])) };
  }

  /** Adds the next block to the last ones, unless they are of another chain. If `isComplete`, reads those that are missing. */
  async #addRecent(block: Block, isComplete: boolean): Promise<void> {
    const at = this.#recent.findIndex(({ hash }) => hash === block.previous);
    this.#recent = [linkOf(block), ...(at < 0 ? [] : this.#recent.slice(at, at + TOO_YOUNG - 1))];
    let { previous } = this.#recent.at(-1) ?? block;
    while (isComplete && this.#recent.length < TOO_YOUNG && previous !== NO_BLOCK) {
      const older = linkOf(await this.node.readBlock(previous));
      this.#recent.push(older);
      ({ previous } = older);
    }
  }
}

/** Without the bytes of the block. */
const linkOf = ({ hash, previous, txids }: Block): Pick<Block, 'hash' | 'previous' | 'txids'> => ({ hash, previous, txids });

const keyOf = ({ transaction, input }: Commitment): string => `${transaction}:${input}`;

/** True if `txids`, 32 bytes each, contains `txid`. */
function hasId(txids: Uint8Array, txid: Uint8Array): boolean {
  const ids = Buffer.from(txids.buffer, txids.byteOffset, txids.length);
  for (let at = ids.indexOf(txid); at >= 0; at = ids.indexOf(txid, at + 1)) if (at % 32 === 0) return true;
  return false;
}
