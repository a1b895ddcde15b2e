/** Options of a pull, their defaults, and its result. */
import type { Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import type { BlockRange } from '../duckdb/blockRanges.ts';
import type { Store } from '../duckdb/store.ts';

/** Highest valid height. Bitcoin's chain reaches it in about 170 years, so a greater height means wrong data. */
export const HIGHEST = 10_000_000;

/** Defaults of requests: how many a second (`rate`), retries, longest time without data, and first pause. */
export const DEFAULTS = { rate: 10, retries: 8, timeoutMs: 30_000, pauseMs: 500 } as const;

export interface WantedBlocks {
  /** First height, or a number of last blocks. If undefined, the first pulled block, or the first block of the source. */
  readonly from: number | { readonly last: number } | undefined;
  /** Last height; undefined for the tip. */
  readonly to: number | undefined;
}

export interface PullOptions {
  /** Path of the folder `pulled`. */
  readonly folder: string;
  readonly wanted: WantedBlocks;
  /** Number of last blocks that a pull may replace if they changed. Older blocks are settled. */
  readonly confirmations: number;
  /** Maximum number of parallel requests. A pull from a node also reads this many blocks ahead. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

export interface Tools {
  readonly store: Store;
  readonly log: Log;
  readonly progress: Progress;
}

export interface PullResult {
  /** Number of fetched blocks, including blocks without records. */
  readonly blocks: number;
  readonly records: number;
  /** Total size of the files that were written, in bytes. */
  readonly bytes: number;
  /** Number of pulled blocks that changed at the source. */
  readonly replaced: number;
  /** Ranges of heights that were pulled, ascending. */
  readonly heights: readonly BlockRange[];
}
