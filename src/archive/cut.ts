/**
 * Which blocks share a segment. The rule depends only on the sizes of the blocks and on the highest block, never on
 * earlier builds: so an incremental build makes the files of a full one.
 *
 * A range of heights is aligned: its length is a power of two, and its first height is a multiple of it. A range is one
 * segment if all of its heights are at or below the tip, there are not too many of them, and its pages fit into an object.
 * Any other range is halved.
 * So the newest blocks are in a few segments of growing length, like the digits of a binary counter: each new block
 * joins the newest of them.
 */
import { exceeds } from '../limits.ts';
import { HIGHEST_HEIGHT } from './root.ts';

/** Blocks that stay together: one block, or a segment of the last build. `first` and `last` are an aligned range. */
export interface Piece {
  readonly first: number;
  readonly last: number;
  /** Size of the pages. */
  readonly bytes: number;
}

/** Bounds of a segment. */
export interface CutForm {
  /** Most bytes of pages. A block may have more. */
  readonly objectSize: number;
  /** Most heights, so that a directory stays small enough for the memory of readers. */
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
 * Cuts pieces, in ascending order, into segments. `tip` is the highest block. A piece of several blocks must be a
 * segment under the same rule: its range must not exceed the tip.
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
