/** Data that all checks of a verification share. */
import { rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import type { BlockDigest, Manifest } from '../contract/schemas.ts';
import { makeScratch } from '../disk/scratchFolder.ts';
import { Store } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { BuildError, codeOf, messageOf } from '../errors.ts';
import type { ListTables } from '../format/listTables.ts';
import type { Limits } from '../limits.ts';
import type { BuiltSite } from '../pages/mirrorOptions.ts';
import type { ComparingSink } from './comparingSink.ts';
import type { Findings } from './findings.ts';

/** Columns of the blocks of an output. */
export const HEIGHTS = columns('block_height BIGINT, block_hash VARCHAR, records BIGINT');

export interface Verification {
  /** The output folder. */
  readonly root: string;
  /** Undefined if the manifest names no archive. */
  readonly archive: StoredArchive | undefined;
  readonly manifest: Manifest;
  readonly site: BuiltSite;
  /** Blocks in the digest files, ascending by height. */
  readonly blocks: readonly BlockDigest[];
  readonly findings: Findings;
  /** Compares all files that are not pages with the content that they must have. */
  readonly own: ComparingSink;
  readonly limits: Limits;
  /** The checks run one after another, so they share this store. */
  readonly store: Store;
  /** Opens a store that works while `store` does no more than render pages. The caller closes it. */
  readonly openBeside: () => Promise<Store>;
  /** Folder for temporary files, including temporary files of the store. */
  readonly scratch: string;
  readonly progress: Progress;
}

/** Fraction of its usual memory that the store gets. The verification needs the rest for the pages of a block. */
const PART = 0.83;

/** Fraction of the store's memory for a store beside it. Rendering pages needs the rest. */
const BESIDE = 0.6;

/**
 * Calls `work` with an empty store and its folder, then removes both. `memoryLimit` is a size such as `1GB`. Set `isSmall` for little data:
 * the store then keeps freed memory, because returning it to the system takes time.
 */
export async function withScratchStore<T>(
  memoryLimit: string,
  work: (scratch: Pick<Verification, 'store' | 'openBeside' | 'scratch'>) => Promise<T>,
  isSmall = false,
): Promise<T> {
  const scratch = makeScratch(tmpdir(), 'rune-activity-mirror-scratch-');
  let store: Store | undefined;
  try {
    store = await Store.open({ memoryLimit, part: PART, threads: availableParallelism(), scratch });
    if (!isSmall) await store.returnFreed();
    const openBeside = () => Store.open({ memoryLimit, part: PART * BESIDE, threads: 1, scratch: join(scratch, 'beside') });
    return await work({ store, openBeside, scratch });
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(codeOf(error) ?? '')) throw error;
    throw new BuildError(`the folder for temporary files is full: ${messageOf(error)}`, [
      'Free some space there, or name another folder in the variable TMPDIR.',
    ]);
  } finally {
    store?.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** True if all records of the mirror are from a node. */
export const isFromNode = ({ sources = [], lists }: Verification['manifest']): boolean =>
  lists?.outputs !== undefined || (sources.length > 0 && sources.every(({ rules }) => rules === 'ord'));

/** Returns the names of the lists that only one of a mirror's manifest and its root has. */
export function differingLists(
  { lists: named = {} }: Manifest,
  { etchings, activity, balances, outputs }: Partial<ListTables> = {},
): string[] {
  const parts = { etchings, rune_activity: activity, address_activity: activity, balances, holders: balances, outputs };
  const names = Object.keys(parts) as (keyof typeof parts)[];
  return names.filter((name) => (named[name] === undefined) !== (parts[name] === undefined));
}
