/** Range of heights, both ends included. */
export interface Heights {
  readonly first: number;
  readonly last: number;
}
