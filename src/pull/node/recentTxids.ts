/**
 * Keeps the transaction ids of the last blocks, to find outputs that are too young to be the commitment to a name. So a
 * pull need not ask the node for the heights of outputs.
 */
import { CONFIRMATIONS } from '../../runes/indexBlock.ts';
import type { Block } from '../../runes/parseBlock.ts';

/** Number of blocks, from the etching's block backwards, whose outputs are too young to be the etching's commitment. */
const TOO_YOUNG = CONFIRMATIONS - 1;

/** Hash of the previous block in the header of a chain's first block. */
const NO_BLOCK = '0'.repeat(64);

/**
 * Number of blocks to keep below the highest one. Blocks are read ahead in parallel, and each needs the blocks below
 * it.
 */
const KEPT = 100;

type BlockLink = Pick<Block, 'hash' | 'previous' | 'txids'>;

export class RecentTxids {
  readonly #blocks = new Map<number, Promise<BlockLink>>();
  readonly #read: (hash: string) => Promise<Block>;

  /** `read` reads a block by its hash. Called if the added block of a height is missing, or is of another chain. */
  constructor(read: (hash: string) => Promise<Block>) {
    this.#read = read;
  }

  /** Adds a block that is being read. */
  add(height: number, block: Promise<Block>): void {
    const link = block.then(({ hash, previous, txids }) => ({ hash, previous, txids }));
    // Avoids an unhandled rejection: the caller handles the error of `block`, and #lastUpTo() reads the block again.
    link.catch(() => undefined);
    this.#blocks.set(height, link);
    this.#blocks.delete(height - KEPT);
  }

  /**
   * Returns a function that finds the height of a transaction in the last blocks up to this one. That function returns
   * undefined for an older transaction.
   */
  finder(block: Block, height: number): (txid: Uint8Array) => Promise<number | undefined> {
    let last: Promise<Uint8Array[]> | undefined;
    return async (txid) => {
      last ??= this.#lastUpTo(block, height);
      const age = (await last).findIndex((txids) => hasId(txids, txid));
      return age < 0 ? undefined : height - age;
    };
  }

  /** Returns the transaction ids of the last blocks up to this one, newest first. */
  async #lastUpTo(block: Block, height: number): Promise<Uint8Array[]> {
    const all = [block.txids];
    let { previous } = block;
    for (let at = height - 1; previous !== NO_BLOCK && all.length < TOO_YOUNG; at--) {
      const known = await this.#blocks.get(at)?.catch(() => undefined);
      const link = known?.hash === previous ? known : await this.#read(previous);
      all.push(link.txids);
      previous = link.previous;
    }
    return all;
  }
}

/** True if `txids`, 32 bytes each, contains `txid`. */
function hasId(txids: Uint8Array, txid: Uint8Array): boolean {
  const ids = Buffer.from(txids.buffer, txids.byteOffset, txids.length);
  for (let at = ids.indexOf(txid); at >= 0; at = ids.indexOf(txid, at + 1)) if (at % 32 === 0) return true;
  return false;
}
