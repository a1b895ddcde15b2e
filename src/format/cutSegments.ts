/**
 * Cuts the blocks of an archive into segments. The cut depends only on the blocks' sizes and on the highest block,
 * never on earlier builds, so that an incremental build writes the same files as a full build.
 *
 * A range of heights is aligned if its length is a power of two, and its first height a multiple of this length. An
 * aligned range is one segment if it ends at or below the tip and exceeds no limit of `CutForm`. Otherwise it is
 * halved. So segments near the tip are short, and a new block may join several of them to one longer segment.
 */
import { exceeds } from '../limits.ts';
import { HIGHEST_HEIGHT } from './root.ts';

/** A block, or a segment of the last build. `first` and `last` are its range of heights, which is aligned. */
export interface Piece {
  readonly first: number;
  readonly last: number;
  /** Size of the pages, in bytes. */
  readonly bytes: number;
}

/** Limits of a segment. */
export interface CutForm {
  /** Most bytes of pages. A single block may have more. */
  readonly objectSize: number;
  /** Most heights. Limits the size of a directory, because readers keep directories in memory. */
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
 * Groups pieces into segments. `pieces` ascend by height, and `tip` is the highest height. A piece of several blocks
 * must end at or below the tip and be within the limits, because a piece cannot be halved.
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
    divide(
      first,
      half,
      inside.filter((piece) => piece.first < first + half),
    );
    divide(
      first + half,
      half,
      inside.filter((piece) => piece.first >= first + half),
    );
  };
  divide(0, ALL_HEIGHTS, pieces);
  return cuts;
}
