/** The nearest blocks of the mirror before and after a block. */
import type { Heights } from './requestMirror.ts';

/** Heights of the nearest blocks of the mirror before and after a block. Undefined if there is none. */
export interface Neighbours {
  readonly previous: number | undefined;
  readonly next: number | undefined;
}

export function neighboursOf(height: number, heights: Heights): Neighbours {
  let previous: number | undefined;
  for (const [first, last] of heights) {
    if (first > height) return { previous, next: first };
    previous = last < height ? last : height > first ? height - 1 : previous;
    if (height < last) return { previous, next: height + 1 };
  }
  return { previous, next: undefined };
}
