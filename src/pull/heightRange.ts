/** Range of heights, both ends included. */
export interface Heights {
  readonly first: number;
  readonly last: number;
}

export const heightsOf = ({ first, last }: Heights): number[] => Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => first + i);
