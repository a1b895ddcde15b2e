/**
 * Transaction ids of the last blocks. From these ids a pull knows which outputs are too young to be the commitment to a
 * name, without asking the node for their heights.
 */

import { CONFIRMATIONS } from '../../runes/indexBlock.ts';
import type { Block, BlockLink } from '../../runes/parseBlock.ts';

/** Number of last blocks, including the etching's own block, that cannot have the commitment of an etching. */
const TOO_YOUNG = CONFIRMATIONS - 1;

/** Hash that the header of a chain's first block gives as its previous block. */
const NO_BLOCK = '0'.repeat(64);

/** Number of blocks to keep below the highest one. Blocks that are read ahead need the blocks before them. */
const KEPT = 100;

export class RecentBlocks {
  readonly #blocks = new Map<number, Promise<BlockLink>>();
  readonly #read: (hash: string) => Promise<Block>;

  /** `read` reads a block that was not added. */
  constructor(read: (hash: string) => Promise<Block>) {
    this.#read = read;
  }

  /** Adds a block that is being read. */
  add(height: number, block: Promise<Block>): void {
    const link = block.then(({ hash, previous, txids }) => ({ hash, previous, txids }));
    // The caller that reads the block handles the error. Another user of this promise reads the block again.
    link.catch(() => undefined);
    this.#blocks.set(height, link);
    this.#blocks.delete(height - KEPT);
  }

  /** Returns a function that finds the height of a transaction in the last blocks up to this one, else undefined. */
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
