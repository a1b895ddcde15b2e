/**
 * Cuts the blocks of an archive into segments. The cut depends only on the sizes of the blocks and on the highest block, so an incremental
 * build writes the same files as a full build.
 *
 * A range of heights is aligned if its length is a power of two, and its first height is a multiple of this length. An aligned range is one
 * segment if it ends at or below the tip and exceeds no limit of `CutForm`. Otherwise it is halved. So segments near the tip are short, and
 * when a new block completes an aligned range, several segments may become one longer segment.
 */
import { exceeds } from '../limits.ts';
import { HIGHEST_HEIGHT } from './root.ts';

/** A block, or a segment of the last build. Its heights are an aligned range. */
export interface Piece {
  readonly first: number;
  readonly last: number;
  /** Size of the pages, in bytes. */
  readonly bytes: number;
}

export interface CutForm {
  /** Maximum size of the pages in bytes. A single block may be larger. */
  readonly objectSize: number;
  /** Maximum number of heights. It limits the size of a directory, because readers keep directories in memory. */
  readonly segmentBlocks: number;
}

/** The range of a segment, and the pieces in it. */
export interface Cut<Of extends Piece> {
  readonly first: number;
  readonly last: number;
  readonly pieces: readonly Of[];
}

const ALL_HEIGHTS = 2 ** Math.ceil(Math.log2(HIGHEST_HEIGHT));

/**
 * Groups pieces, which ascend by height, into segments. A piece of several blocks must end at or below the tip and be within the limits,
 * because it cannot be halved.
 */
export function cut<Of extends Piece>(pieces: readonly Of[], tip: number, { objectSize, segmentBlocks }: CutForm): Cut<Of>[] {
  const cuts: Cut<Of>[] = [];
  const divide = (first: number, length: number, inside: readonly Of[]): void => {
    if (inside.length === 0) return;
    const last = first + length - 1;
    const bytes = inside.reduce((sum, piece) => sum + piece.bytes, 0);
    if (length === 1 || (last <= tip && bytes <= objectSize && !exceeds({ segmentBlocks }, 'segmentBlocks', length))) {
      cuts.push({ first, last, pieces: inside });
      return;
    }
    const half = length / 2;
    const lower = inside.filter((piece) => piece.first < first + half);
    divide(first, half, lower);
    divide(first + half, half, inside.slice(lower.length));
  };
  divide(0, ALL_HEIGHTS, pieces);
  return cuts;
}
