/** Checks that the folder `pulled` belongs to the node's network and has the wanted blocks. */
import { InputError } from '../../errors.ts';
import { hundredOf } from '../../rows/rowsForm.ts';
import type { WantedBlocks } from '../pullOptions.ts';
import type { ChainInfo } from './coreNode.ts';

/** Returns the first height to pull for the last `last` blocks, rounded down to the first height of a file. */
export const lastBlocks = (last: number, tip: number): number => hundredOf(Math.max(tip - last + 1, 0)).first;

interface Wanting {
  /** First height with rows in the folder, undefined for a new one. */
  readonly found: number | undefined;
  readonly firstHeight: number;
  readonly tip: number;
  readonly confirmations: number;
  readonly folder: string;
}

/**
 * Returns the first height whose rows the folder has after this pull. If an earlier pull wrote rows, this is the first
 * height of these rows. Throws an InputError if `from` is a lower height.
 */
export function firstWanted({ from }: WantedBlocks, { found, firstHeight, tip, confirmations, folder }: Wanting): number {
  if (from === undefined) return found ?? firstHeight;
  // Blocks that are not settled need rows, or else the next pull reads them again.
  const asked = Math.max(typeof from === 'number' ? from : lastBlocks(Math.max(from.last, confirmations + 1), tip), firstHeight);
  // If the last N blocks are wanted (`from` is an object), a height below `found` is no error. The node may have fallen
  // behind, so that its last N blocks begin at a lower height.
  if (found === undefined || asked >= found || typeof from === 'object') return found ?? asked;
  throw new InputError(`--blocks asks for block ${asked}, but ${folder} has rows from block ${found} on`, [
    `Earlier pulls read the blocks before it without writing their rows. To write them, remove ${folder}: the next pull reads all blocks again.`,
  ]);
}

export function checkNetwork(found: string | undefined, chain: ChainInfo, node: string, folder: string): void {
  if (found === undefined || found === chain.network) return;
  throw new InputError(`${node} is on the network ${chain.network}, but ${folder} has blocks of ${found}`, [
    'Check --from, or give another folder with --to.',
  ]);
}
