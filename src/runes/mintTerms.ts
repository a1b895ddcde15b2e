/** Computes the heights at which a rune can be minted, by ord's rules. Indexing, lists and the explorer use it. */

/** Integer of a mint term. Undefined or null if the rune does not have the term. */
type Term = bigint | number | string | null | undefined;

/** Limit as a height, and as an offset from the block of the etching. If a rune has both, the stricter one applies. */
type Limit = readonly [height: Term, offset: Term];

/** First height at which mints succeed, and first height at which they no longer do. Undefined without such a limit. */
export interface MintWindow {
  readonly start: bigint | undefined;
  readonly end: bigint | undefined;
}

/** Returns the range of heights at which a rune can be minted. `etched` is the block of its etching. */
export function mintWindow(etched: number, starts: Limit, ends: Limit): MintWindow {
  const [[start, offsetStart], [end, offsetEnd]] = [heightsOf(etched, starts), heightsOf(etched, ends)];
  return {
    start: start === undefined || (offsetStart !== undefined && offsetStart > start) ? offsetStart : start,
    end: end === undefined || (offsetEnd !== undefined && offsetEnd < end) ? offsetEnd : end,
  };
}

const heightsOf = (etched: number, [height, offset]: Limit): readonly [bigint | undefined, bigint | undefined] => [
  height === undefined || height === null ? undefined : BigInt(height),
  offset === undefined || offset === null ? undefined : BigInt(offset) + BigInt(etched),
];

/** True if a mint at a height succeeds after `mints` earlier mints. Without a cap, no mint succeeds. */
export const isMintOpen = ({ start, end }: MintWindow, height: number, mints: number | bigint, cap: Term): boolean =>
  (start === undefined || height >= start) && (end === undefined || height < end) && BigInt(mints) < BigInt(cap ?? 0);
