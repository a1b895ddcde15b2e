/**
 * The index of a folder of rows that a pull from a node writes: adds, joins and removes its files, and follows reorganisations. Each step
 * is one replacement of the index (rows/rowsFolder.ts).
 */
import type { FolderIndex, Kind, RowFile } from '../../contract/rowsSchemas.ts';
import type { LastRead } from '../../contract/sources.ts';
import type { BlockRange } from '../../duckdb/blockRanges.ts';
import { InputError } from '../../errors.ts';
import { groupBy } from '../../groupBy.ts';
import { checkSizes, commitIndex, lost, mirrorsUpTo, wholeUpTo } from '../../rows/rowsFolder.ts';
import { hundredOf } from '../../rows/rowsForm.ts';
import type { DiskLedger, IndexedBlock } from '../../unspent/diskLedger.ts';
import { workFile } from '../pulledFiles.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { Made, RowFiles } from './rowFiles.ts';

export class NodeFolder {
  constructor(
    private readonly path: string,
    private index: FolderIndex,
    private readonly ledger: DiskLedger,
    private readonly rows: RowFiles,
    /** Number of newest blocks whose hashes the index has, if they are known. */
    private readonly ends: number,
  ) {}

  /** Returns the index, with rows of all blocks above the settled ledger. Throws an InputError if a file is missing or has another size. */
  checked(): FolderIndex {
    const { base, hash, rowsFrom } = this.ledger;
    const { tip } = this.index;
    if (hash !== undefined && tip === undefined) throw lost(`${this.path} has no index of its rows`, this.path);
    checkSizes(this.path, this.index);
    const top = tip?.height ?? base;
    if (top < base) throw lost(`${this.path} lacks the rows of block ${top + 1}, which was pulled before`, this.path);
    // Blocks without rows that count were not settled when the last pull ended. They are read again.
    if (rowsFrom > base + 1 && top > base) this.list(base);
    return this.index;
  }

  add(made: readonly Made[]): void {
    const added = (kind: Kind) => [...this.index[kind], ...made.flatMap(([of, file]) => (of === kind ? [file] : []))];
    this.index = { ...this.index, files: added('files'), runes: added('runes') };
    this.list(this.ledger.height);
  }

  /** Writes the index up to a height of the ledger, and returns the range with rows. `ends` replaces the hashes of the newest blocks. */
  list(height: number, ends?: readonly LastRead[]): BlockRange[] {
    const { rowsFrom, network } = this.ledger;
    const hash = this.ledger.hashAt(height);
    const known =
      this.index.tip?.hash === hash ? this.index.ends : this.#endsUpTo(height).filter((end): end is LastRead => end.hash !== undefined);
    this.index = indexUpTo(this.index, { height, hash, rowsFrom, network, ends: ends ?? known });
    commitIndex(this.path, this.index, workFile(this.path, '.json'));
    return rowsFrom <= height ? [{ first: rowsFrom, last: height }] : [];
  }

  /** Returns `ends` for `list`: builds need them even of blocks without rows. Undefined if the node's chain changed meanwhile. */
  async findEnds(node: BitcoinNode): Promise<LastRead[] | undefined> {
    const { height: top, hash: topHash } = this.ledger;
    const ends: LastRead[] = [];
    for (const { height, hash: known } of this.#endsUpTo(top)) {
      const hash = known ?? (await node.hashAt(height));
      if (hash === undefined) return undefined;
      ends.push({ height, hash });
    }
    return ends.length > 0 && (await node.hashAt(top)) !== topHash ? undefined : ends;
  }

  /** Removes the blocks that are not in the node's chain, and returns their number. Throws an InputError for more than `confirmations`. */
  async removeReplaced(node: BitcoinNode, confirmations: number): Promise<number> {
    const { base, height: top } = this.ledger;
    const fork = await findFork(this.ledger, node, confirmations);
    const to = fork === undefined ? undefined : this.#endUpTo(fork);
    if (to === top) return 0;
    if (to === undefined || to < base || top - to > confirmations)
      throw new InputError(
        `${node.name} has another chain: it replaced more than the last ${confirmations} pulled blocks. The last pulled block is ${top}`,
        [`Check --from. If the node is right, remove ${this.path}: the next pull reads all blocks again.`],
      );
    this.list(to);
    this.ledger.rewind(to);
    return top - to;
  }

  /** Removes the rows below `from`, and joins files up to `settled` into files of a hundred blocks. Both count with the next `list`. */
  async tidy(from: number, settled: number): Promise<void> {
    this.ledger.keepRowsFrom(from);
    const { rowsFrom } = this.ledger;
    const joined = async (kind: Kind, files: readonly RowFile[]): Promise<RowFile[]> => {
      const groups = [...groupBy(files, ({ first }) => hundredOf(first).last)].map(([last, some]) => {
        const first = kind === 'files' ? Math.max(hundredOf(last).first, rowsFrom) : hundredOf(last).first;
        const isWhole = some.length === 1 && some[0]?.first === first && some[0].last === last;
        return { first, last, files: some, isDue: last <= settled && !isWhole };
      });
      const due = groups.filter(({ isDue }) => isDue);
      const all = await this.rows.join(kind, due);
      for (const group of groups) if (!group.isDue) for (const file of group.files) all.push(file);
      return all.sort((a, b) => a.first - b.first);
    };
    const kept = this.index.files.filter(({ last }) => last >= rowsFrom);
    this.index = { ...this.index, files: await joined('files', kept), runes: await joined('runes', this.index.runes) };
  }

  /** Returns the highest block up to a height that has no file with a block above it, and whose hash is known. */
  #endUpTo(height: number): number {
    const { base } = this.ledger;
    const end = wholeUpTo(this.index, height);
    return end <= base || this.ledger.hashAt(end) !== undefined ? end : this.#endUpTo(end - 1);
  }

  /** The newest blocks up to a height. Their hash is undefined if the ledger does not know it. */
  #endsUpTo(height: number): IndexedBlock[] {
    const first = Math.max(height - this.ends, this.ledger.rowsFrom);
    return Array.from({ length: Math.max(height - first + 1, 0) }, (_, i) => ({ height: first + i, hash: this.ledger.hashAt(first + i) }));
  }
}

interface IndexEnd extends IndexedBlock {
  readonly rowsFrom: number;
  readonly network: string;
  readonly ends?: readonly LastRead[] | undefined;
}

/** Returns an index without files of blocks above a height or below the first one with rows. */
export const indexUpTo = ({ mirrors, files, runes }: FolderIndex, { height, hash, rowsFrom, network, ends }: IndexEnd): FolderIndex => ({
  version: 1,
  sources: rowsFrom <= height ? [{ rules: 'ord', blocks: [[rowsFrom, height]] }] : [],
  tip: hash === undefined ? undefined : { height, hash },
  network,
  ends: ends && [...ends],
  ...mirrorsUpTo(height, mirrors),
  spent: true,
  runes: runes.filter(({ last }) => last <= height),
  files: files.filter(({ last }) => rowsFrom <= last && last <= height),
});

/** Finds the last pulled block that the node's chain still has. Undefined if it is more than `confirmations` below the last one. */
async function findFork(ledger: DiskLedger, node: BitcoinNode, confirmations: number): Promise<number | undefined> {
  for (let at = ledger.height; at >= Math.max(ledger.base, ledger.height - confirmations); at--) {
    const hash = ledger.hashAt(at);
    // The ledger has no hash of the height below its first block. If the loop gets there, all its blocks were replaced.
    if (hash === undefined ? at === ledger.base : (await node.hashAt(at)) === hash) return at;
  }
  return undefined;
}
