/**
 * The figures that a build has of its data, as far as the explorer uses them.
 */
import type { Operation } from '../pages/lists.ts';

/** `runes/v1/stats.json`. */
export interface Stats {
  /** The lowest and the highest height held. */
  readonly first: number;
  readonly last: number;
  /** How many heights an entry of `activity` stands for. */
  readonly bucket: number;
  readonly operations: Readonly<Record<Operation, number>>;
  readonly activity: readonly BucketOfBlocks[];
  readonly runes: readonly ActiveRune[];
}

/** Blocks from `height` on. */
export interface BucketOfBlocks extends Readonly<Record<Operation, number>> {
  readonly height: number;
  readonly blocks: number;
  readonly timestamp: number;
}

export interface ActiveRune extends Readonly<Record<Operation, number>> {
  readonly id: string;
  readonly spaced_name: string;
  readonly records: number;
}

/** An entry of `runes/v1/blocks.json`, newest first. */
export interface NewBlock {
  readonly height: number;
  readonly hash: string;
  readonly timestamp: number;
  readonly records: number;
  readonly transactions: number;
  readonly operations: Readonly<Record<Operation, number>>;
}
