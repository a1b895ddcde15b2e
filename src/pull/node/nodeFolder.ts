/**
 * Checks, lists, joins and removes the files that pulls from a node wrote to the folder `pulled`. Follows
 * reorganisations of the node's chain.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LastRead } from '../../contract/sources.ts';
import { InputError } from '../../errors.ts';
import { groupBy } from '../../groupBy.ts';
import { hundredOf, isParquet } from '../../rows/rowsForm.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import { allBy } from '../blockSource.ts';
import { updateBlocksFile } from '../blocksFile.ts';
import type { Heights } from '../heightRange.ts';
import { listPulledFiles, type PulledFile, RUNES_FILE } from '../pulledFiles.ts';
import { hasChecksum, removeFiles } from '../writePulled.ts';
import { lost } from './checkFolder.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { RowFiles } from './rowFiles.ts';

export class NodeFolder {
  readonly #path: string;
  readonly #ledger: DiskLedger;
  readonly #rows: RowFiles;

  constructor(path: string, ledger: DiskLedger, rows: RowFiles) {
    this.#path = path;
    this.#ledger = ledger;
    this.#rows = rows;
  }

  /**
   * Throws an InputError if the file of a block in the ledger is missing or damaged. Removes files of blocks above the
   * ledger's height, which a killed pull left behind.
   */
  check(): void {
    const { base, rowsFrom } = this.#ledger;
    // If the journal is damaged, the ledger ends at the last valid block. If a file has this block and later ones,
    // rewinds the ledger to the block before the file.
    const whole = this.#wholeUpTo(this.#ledger.height);
    if (base <= whole && whole < this.#ledger.height) this.#ledger.rewind(whole);
    const { height } = this.#ledger;
    const runes = join(this.#path, RUNES_FILE);
    if (this.#ledger.hash !== undefined && !existsSync(runes)) throw lost(`${runes} is missing`, this.#path);
    let next = rowsFrom;
    for (const { path, first, last } of this.#files())
      if (first <= next && last <= height) {
        if (!isParquet(join(this.#path, path))) throw lost(`${join(this.#path, path)} is damaged`, this.#path);
        next = Math.max(next, last + 1);
      }
    if (next <= height) throw lost(`${this.#path} has no file of block ${next}, which was pulled before`, this.#path);
    if (this.#files().some(({ last }) => last > height)) {
      this.list(height);
      this.#removeAbove(height);
    }
  }

  /**
   * Writes the list of pulled blocks up to a height of the ledger. Returns the range of these blocks. Must be called
   * before `#removeAbove`, so that the list never has a block without a file. `ends` replaces `BlocksFile.ends`.
   */
  list(height: number, ends?: readonly LastRead[]): Heights[] {
    const { rowsFrom } = this.#ledger;
    const heights = rowsFrom <= height ? [{ first: rowsFrom, last: height }] : [];
    const hash = this.#ledger.hashAt(height);
    const tip = heights.length === 0 || hash === undefined ? undefined : { height, hash };
    const known = ends === undefined ? {} : { ends: [...ends] };
    updateBlocksFile(this.#path, allBy('ord'), heights, heights, {
      tip,
      network: this.#ledger.network,
      ...known,
    });
    return heights;
  }

  /** Returns the highest block up to `height` that shares no file with a block above `height`. */
  #wholeUpTo(height: number): number {
    const across = this.#files().find(({ first, last }) => first <= height && height < last);
    return across === undefined ? height : across.first - 1;
  }

  /**
   * Removes the pulled blocks that are not in the node's chain, and returns their number. Throws an InputError for more
   * than `confirmations` blocks.
   */
  async removeReplaced(node: BitcoinNode, confirmations: number): Promise<number> {
    const { base, height: top } = this.#ledger;
    const fork = await findFork(this.#ledger, node, confirmations);
    // A file with blocks on both sides of the fork is removed, so all its blocks are read again.
    const to = fork === undefined ? undefined : this.#wholeUpTo(fork);
    if (to === top) return 0;
    if (to === undefined || to < base || top - to > confirmations)
      throw new InputError(
        `${node.name} has another chain: it replaced more than the last ${confirmations} pulled blocks. The last pulled block is ${top}`,
        [`Check --from. If the node is right, remove ${this.#path}: the next pull reads all blocks again.`],
      );
    this.list(to);
    this.#ledger.rewind(to);
    this.#rows.expectOldRunes();
    this.#removeAbove(to);
    return top - to;
  }

  #removeAbove(height: number): void {
    this.#remove(this.#files().filter(({ last }) => last > height));
  }

  /**
   * Removes the files of blocks below `from`. Joins the files of blocks up to `settled` into files of a hundred blocks.
   */
  async tidy(from: number, settled: number): Promise<void> {
    const { height, rowsFrom } = this.#ledger;
    if (from > rowsFrom) {
      this.#ledger.keepRowsFrom(from);
      this.list(height);
    }
    this.#remove(this.#files().filter(({ last }) => last < this.#ledger.rowsFrom));
    for (const [last, files] of groupBy(this.#files(), ({ first }) => hundredOf(first).last))
      if (last <= settled && files.length > 1)
        await this.#join(files, { first: Math.max(hundredOf(last).first, this.#ledger.rowsFrom), last });
  }

  /** Joins files into one file of these blocks, or finishes the join of a killed pull. */
  async #join(files: readonly PulledFile[], { first, last }: Heights): Promise<void> {
    const joined = files.find((file) => file.first === first && file.last === last);
    const parts = files.filter((file) => file !== joined);
    const isJoined = joined !== undefined && hasChecksum(join(this.#path, joined.path));
    // If a part is missing, the joined file is complete, because parts are removed only after its checksum was written.
    const areAllThere = parts.reduce((sum, part) => sum + part.last - part.first + 1, 0) === last - first + 1;
    if (!isJoined && areAllThere) await this.#rows.join(parts, { first, last });
    this.#remove(parts);
  }

  #files(): PulledFile[] {
    return listPulledFiles(this.#path);
  }

  /** Removes files from the last to the first, so that no kill leaves a gap between the remaining files. */
  #remove(files: readonly PulledFile[]): void {
    removeFiles(this.#path, [...files].reverse());
  }
}

/**
 * Returns the height of the last pulled block that the node's chain still has. Undefined if this block is more than
 * `confirmations` below the ledger's last block.
 */
async function findFork(ledger: DiskLedger, node: BitcoinNode, confirmations: number): Promise<number | undefined> {
  for (let at = ledger.height; at >= Math.max(ledger.base, ledger.height - confirmations); at--) {
    const hash = ledger.hashAt(at);
    // The ledger has no hash of the height below its first block. If the loop gets there, all its blocks were replaced.
    if (hash === undefined || (await node.hashAt(at)) === hash) return at;
  }
  return undefined;
}
