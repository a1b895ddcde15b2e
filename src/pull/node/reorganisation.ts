/** Follows reorganisations of a node's chain: finds the fork, and removes the pulled blocks above the fork. */
import { InputError } from '../../errors.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { NodeFolder } from './nodeFolder.ts';
import type { RowFiles } from './rowFiles.ts';

/** State of a pull that a reorganisation changes. */
interface Pulled {
  readonly ledger: DiskLedger;
  readonly rows: RowFiles;
  readonly files: NodeFolder;
}

/**
 * Removes the pulled blocks that are not in the node's chain, and returns their number. Throws an InputError for more
 * than `confirmations` blocks. `folder` is the path of the pulled files, for messages.
 */
export async function removeReplaced(
  { ledger, rows, files }: Pulled,
  node: BitcoinNode,
  confirmations: number,
  folder: string,
): Promise<number> {
  const top = ledger.height;
  const fork = await findFork(ledger, node, confirmations);
  // A file with blocks on both sides of the fork is removed, so all its blocks are read again.
  const to = fork === undefined ? undefined : files.wholeUpTo(fork);
  if (to === top) return 0;
  if (to === undefined || to < ledger.base || top - to > confirmations) {
    throw new InputError(
      `${node.name} has another chain: it replaced more than the last ${confirmations} of the blocks that were read, up to ${top}`,
      [
        ledger.start === undefined
          ? `Check --from. If the node is right, remove ${folder}: the next pull reads all blocks again.`
          : `Check --from. If the node is right, remove ${folder} and start again from a newer height with --start-from.`,
      ],
    );
  }
  files.list(to);
  ledger.rewind(to);
  rows.hasOldRunes = true;
  files.removeAbove(to);
  return top - to;
}

/**
 * Returns the height of the last pulled block in the node's chain. Undefined if it is more than `confirmations` deep.
 */
async function findFork(ledger: DiskLedger, node: BitcoinNode, confirmations: number): Promise<number | undefined> {
  for (let at = ledger.height; at >= Math.max(ledger.base, ledger.height - confirmations); at--) {
    const hash = ledger.hashAt(at);
    // Without a hash, `at` is below the first block that was read. So none of the pulled blocks is in the node's chain.
    if (hash === undefined || (await node.hashAt(at)) === hash) return at;
  }
  return undefined;
}
