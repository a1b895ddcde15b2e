/**
 * The index of a folder of rows that a pull from a node writes. Adds, joins and removes its files, and follows
 * reorganisations of the node's chain. Each step is one replacement of the index (rows/rowsFolder.ts).
 */
import type { FolderIndex, Kind, RowFile } from '../../contract/rowsSchemas.ts';
import type { LastRead } from '../../contract/sources.ts';
import { InputError } from '../../errors.ts';
import { groupBy } from '../../groupBy.ts';
import { checkSizes, commitIndex, EMPTY_INDEX, lost, mirrorsUpTo, wholeUpTo } from '../../rows/rowsFolder.ts';
import { hundredOf } from '../../rows/rowsForm.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import { workFile } from '../pulledFiles.ts';
import type { Heights } from '../pullOptions.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { Made, RowFiles } from './rowFiles.ts';

export class NodeFolder {
  readonly #path: string;
  readonly #ledger: DiskLedger;
  readonly #rows: RowFiles;
  #index: FolderIndex;

  constructor(path: string, index: FolderIndex | undefined, ledger: DiskLedger, rows: RowFiles) {
    this.#path = path;
    this.#ledger = ledger;
    this.#rows = rows;
    this.#index = index ?? EMPTY_INDEX;
  }

  /**
   * Brings index and ledger to the same height: the index is written before the ledger, and cut before the ledger is
   * rewound. Throws an InputError if a file of the index is missing or has another size.
   */
  check(): void {
    const { base, hash } = this.#ledger;
    const { tip } = this.#index;
    if (hash !== undefined && tip === undefined) throw lost(`${this.#path} has no index of its rows`, this.#path);
    checkSizes(this.#path, this.#index);
    const whole = wholeUpTo(this.#index, Math.min(this.#ledger.height, tip?.height ?? this.#ledger.height));
    if (whole < this.#ledger.height) {
      if (whole < base) throw lost(`${this.#path} lacks the rows of block ${whole + 1}, which was pulled before`, this.#path);
      this.#ledger.rewind(whole);
    }
    if ((tip?.height ?? whole) > whole) this.list(whole);
  }

  /** Adds files of blocks up to the ledger's height. */
  add(made: readonly Made[]): void {
    const added = (kind: Kind) => [...this.#index[kind], ...made.flatMap(({ [kind]: file }) => file ?? [])];
    this.#index = { ...this.#index, files: added('files'), runes: added('runes') };
    this.list(this.#ledger.height);
  }

  /**
   * Writes the index of the blocks up to a height of the ledger. Returns the range of the blocks with rows. `ends`
   * replaces the hashes of the newest blocks.
   */
  list(height: number, ends?: readonly LastRead[]): Heights[] {
    const { rowsFrom, network } = this.#ledger;
    const { tip: before, mirrors, files, runes } = this.#index;
    const hash = this.#ledger.hashAt(height);
    const tip = hash === undefined ? undefined : { height, hash };
    const known = ends === undefined ? (before?.hash === hash ? this.#index.ends : undefined) : [...ends];
    this.#index = {
      version: 1,
      sources: rowsFrom <= height ? [{ rules: 'ord', blocks: [[rowsFrom, height]] }] : [],
      tip,
      network,
      ends: known,
      ...mirrorsUpTo(height, mirrors),
      spent: true,
      runes: runes.filter(({ last }) => last <= height),
      files: files.filter(({ last }) => rowsFrom <= last && last <= height),
    };
    commitIndex(this.#path, this.#index, workFile(this.#path, '.json'));
    return rowsFrom <= height ? [{ first: rowsFrom, last: height }] : [];
  }

  /**
   * Removes the pulled blocks that are not in the node's chain, and returns their number. Throws an InputError for more
   * than `confirmations` blocks.
   */
  async removeReplaced(node: BitcoinNode, confirmations: number): Promise<number> {
    const { base, height: top } = this.#ledger;
    const fork = await findFork(this.#ledger, node, confirmations);
    // A file with blocks on both sides of the fork is removed, so all its blocks are read again.
    const to = fork === undefined ? undefined : wholeUpTo(this.#index, fork);
    if (to === top) return 0;
    if (to === undefined || to < base || top - to > confirmations)
      throw new InputError(
        `${node.name} has another chain: it replaced more than the last ${confirmations} pulled blocks. The last pulled block is ${top}`,
        [`Check --from. If the node is right, remove ${this.#path}: the next pull reads all blocks again.`],
      );
    this.list(to);
    this.#ledger.rewind(to);
    return top - to;
  }

  /**
   * Removes the rows of blocks below `from`. Joins the files of blocks up to `settled` into files of a hundred blocks.
   * Both count with the next call of `list`.
   */
  async tidy(from: number, settled: number): Promise<void> {
    if (from > this.#ledger.rowsFrom) this.#ledger.keepRowsFrom(from);
    const { rowsFrom } = this.#ledger;
    const joined = async (kind: Kind, files: readonly RowFile[]): Promise<RowFile[]> => {
      const all: RowFile[] = [];
      for (const [last, some] of groupBy(files, ({ first }) => hundredOf(first).last)) {
        const first = kind === 'files' ? Math.max(hundredOf(last).first, rowsFrom) : hundredOf(last).first;
        const isWhole = some.length === 1 && some[0]?.first === first && some[0].last === last;
        if (last <= settled && !isWhole) all.push(await this.#rows.join(kind, some, { first, last }));
        else for (const file of some) all.push(file);
      }
      return all;
    };
    const kept = this.#index.files.filter(({ last }) => last >= rowsFrom);
    this.#index = { ...this.#index, files: await joined('files', kept), runes: await joined('runes', this.#index.runes) };
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
