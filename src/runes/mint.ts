/** When a rune can be minted, by ord's rule: for the protocol, for etchings, and for the explorer. */

/** An integer; undefined or null if the rune does not have the term. */
type Term = bigint | number | string | null | undefined;

/** A height, and an offset from the block of the etching. If a rune has both, the stricter one counts. */
type Limit = readonly [height: Term, offset: Term];

/** The first height with mints, and the first height after them; undefined without a limit. */
export interface MintWindow {
  readonly start: bigint | undefined;
  readonly end: bigint | undefined;
}

/** Returns the heights at which a rune can be minted. `etched` is the block of its etching. */
export function mintWindow(etched: number, starts: Limit, ends: Limit): MintWindow {
  const heights = ([height, offset]: Limit) =>
    [height ?? undefined, offset ?? undefined].map((term, i) => (term === undefined ? undefined : BigInt(term) + BigInt(i * etched)));
  const [[start, offsetStart], [end, offsetEnd]] = [heights(starts), heights(ends)];
  return {
    start: start === undefined || (offsetStart !== undefined && offsetStart > start) ? offsetStart : start,
    end: end === undefined || (offsetEnd !== undefined && offsetEnd < end) ? offsetEnd : end,
  };
}

/** True if a mint at a height succeeds after `mints` others. A missing cap allows none. */
export const isMintOpen = ({ start, end }: MintWindow, height: number, mints: number, cap: Term): boolean =>
  (start === undefined || height >= start) && (end === undefined || height < end) && BigInt(mints) < BigInt(cap ?? 0);
