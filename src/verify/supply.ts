/**
 * Counts mints and burns again from records, and checks the list of etchings against them.
 */
import { joinRuns, type Sources } from '../contract/sources.ts';
import { parseEtching } from '../etchings/parse.ts';
import { type Counts, type Etching, renderEtching } from '../etchings/render.ts';
import type { BlockDigest } from '../output/digests.ts';
import { readEtchingPage } from '../pages/etchingFiles.ts';
import type { Site } from '../pages/site.ts';
import type { Activity } from './blocks.ts';
import type { Findings } from './findings.ts';

/** An etching as its JSON has it, without the counts. */
export type ReadEtching = Omit<Etching, 'counts'>;

/** Mints and burns of a rune so far. `decimals` are those of its amounts, -1 when they differ. */
interface Sums {
  mints: number;
  burns: number;
  minted: bigint;
  burned: bigint;
  decimals: number | undefined;
}

/** Counts mints and burns by rune. */
export class SupplyRecount {
  readonly #runes = new Map<string, Sums>();
  /** Runes with mints or burns since `takeTouched` was called last. */
  #touched = new Set<string>();

  /** Adds the records of a block. */
  add(records: readonly Activity[]): void {
    for (const { rune, operation, amount } of records) {
      let sums = this.#runes.get(rune.id);
      if (sums === undefined) {
        sums = { mints: 0, burns: 0, minted: 0n, burned: 0n, decimals: undefined };
        this.#runes.set(rune.id, sums);
      }
      if (operation === 'mint') sums.mints += 1;
      else if (operation === 'burn') sums.burns += 1;
      else continue;
      this.#touched.add(rune.id);
      if (amount === undefined) continue;
      const decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      sums.decimals = sums.decimals === undefined || sums.decimals === decimals ? decimals : -1;
      const units = BigInt(amount.replace('.', ''));
      if (operation === 'mint') sums.minted += units;
      else sums.burned += units;
    }
  }

  /** Returns the runes with mints or burns since the last call. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  /** The ids of all runes with records. */
  get ids(): Iterable<string> {
    return this.#runes.keys();
  }

  /** Returns the counts of a rune; undefined when its amounts have other decimals than the rune. */
  countsOf({ id, divisibility }: Pick<Etching, 'id' | 'divisibility'>): Counts | undefined {
    const { decimals, ...counts } = this.#runes.get(id) ?? { mints: 0, burns: 0, minted: 0n, burned: 0n, decimals: undefined };
    return decimals === undefined || decimals === divisibility ? counts : undefined;
  }
}

/** What the etchings of an output are compared with. */
export interface EtchingChecks {
  readonly site: Site;
  readonly hasCounts: boolean;
  readonly recount: SupplyRecount;
  /** Which blocks were read, as far as the manifest says. */
  readonly sources: Sources;
}

/** Parses a page of etchings. Throws when one is not what the records up to the block `tip` say. */
export function readPage(text: string, tip: number, { site, hasCounts, recount }: EtchingChecks): ReadEtching[] {
  const etchings = readEtchingPage(text);
  if (etchings === undefined) throw new Error('is not a complete page');
  return etchings.map((json) => {
    const etching = parseEtching(json, site.dialect);
    const counts = hasCounts ? recount.countsOf(etching) : undefined;
    if (renderEtching({ ...etching, counts }, site.dialect, tip) !== json) throw new Error(`${etching.id} is not as its records say`);
    return etching;
  });
}

/** Checks that the list is complete and in order, and that it has counts when it can. `tip` is the last block that was read. */
export function checkList(
  all: readonly ReadEtching[],
  { hasCounts, recount, sources }: EtchingChecks,
  blocks: readonly BlockDigest[],
  tip: number,
  findings: Findings,
): void {
  for (const [i, etching] of all.entries()) {
    const before = all[i - 1];
    if (before !== undefined && !isBefore(before, etching)) findings.add(`the etching ${etching.id} is not in order`);
    if (etching.block_height > tip) findings.add(`the etching ${etching.id} is above the last block that was read`);
  }
  const known = new Set(all.map(({ id }) => id));
  for (const id of recount.ids) if (!known.has(id)) findings.add(`the rune ${id} has records but no etching`);
  const heights = new Set(blocks.map(({ height }) => height));
  const isWhole =
    all.some(({ number }) => number === 0) &&
    all.every(({ block_height }) => heights.has(block_height)) &&
    !hasGap(all, blocks, tip, sources);
  if (isWhole !== hasCounts) findings.add(`the etchings ${hasCounts ? 'have' : 'lack'} counts of mints and burns, against the rule`);
}

/** True when some block between the first that was read and the tip was not, and the output does not have it. */
function hasGap(all: readonly ReadEtching[], blocks: readonly BlockDigest[], tip: number, sources: Sources): boolean {
  const read = joinRuns(sources.flatMap((source) => source.blocks));
  const first = read[0]?.[0];
  if (first === undefined) return false;
  const low = Math.max(
    first,
    all.reduce((least, { block_height }) => Math.min(least, block_height), tip),
  );
  const known = joinRuns([...read, ...blocks.map(({ height }): [number, number] => [height, height])]);
  return low <= tip && !known.some(([from, to]) => from <= low && tip <= to);
}

type Place = Pick<Etching, 'block_height' | 'tx_index' | 'number' | 'id'>;

function isBefore(a: Place, b: Place): boolean {
  if (a.block_height !== b.block_height) return a.block_height < b.block_height;
  if (a.tx_index !== b.tx_index) return a.tx_index < b.tx_index;
  if (a.number !== b.number) return a.number < b.number;
  return Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) < 0;
}
