/**
 * Counts mints and burns again from records, and checks the list of etchings against them.
 */
import { joinRuns, type Sources } from '../contract/sources.ts';
import { parseEtching } from '../etchings/parse.ts';
import { type Counts, type Etching, renderEtching } from '../etchings/render.ts';
import type { BlockDigest } from '../output/digests.ts';
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

  /** Forgets all runes. */
  clear(): void {
    this.#runes.clear();
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

/** Throws when the JSON of an etching is not as the records up to the block `tip` say. */
export function checkEtching(json: string, tip: number, { site, hasCounts, recount }: EtchingChecks): void {
  const etching = parseEtching(json, site.dialect);
  const counts = hasCounts ? recount.countsOf(etching) : undefined;
  if (renderEtching({ ...etching, counts }, site.dialect, tip) !== json) throw new Error(`${etching.id} is not as its records say`);
}

/** Checks that the list of etchings is complete and in order, and that it has counts when it can. */
export class EtchingList {
  readonly #checks: EtchingChecks;
  readonly #blocks: readonly BlockDigest[];
  readonly #heights: ReadonlySet<number>;
  readonly #tip: number;
  readonly #findings: Findings;
  readonly #ids = new Set<string>();
  #last: Place | undefined;
  #hasFirst = false;
  #hasBlocks = true;
  #lowest: number;

  /** `tip` is the last block that was read. */
  constructor(checks: EtchingChecks, blocks: readonly BlockDigest[], tip: number, findings: Findings) {
    this.#checks = checks;
    this.#blocks = blocks;
    this.#heights = new Set(blocks.map(({ height }) => height));
    this.#tip = tip;
    this.#lowest = tip;
    this.#findings = findings;
  }

  /** Number of etchings so far. */
  get count(): number {
    return this.#ids.size;
  }

  /** Adds the next etching. */
  add({ id, number, block_height, tx_index }: ReadEtching): void {
    const place = { id, number, block_height, tx_index };
    if (this.#last !== undefined && !isBefore(this.#last, place)) this.#findings.add(`the etching ${id} is not in order`);
    if (block_height > this.#tip) this.#findings.add(`the etching ${id} is above the last block that was read`);
    this.#last = place;
    this.#ids.add(id);
    this.#hasFirst ||= number === 0;
    this.#hasBlocks &&= this.#heights.has(block_height);
    this.#lowest = Math.min(this.#lowest, block_height);
  }

  finish(): void {
    const { hasCounts, recount, sources } = this.#checks;
    for (const id of recount.ids) if (!this.#ids.has(id)) this.#findings.add(`the rune ${id} has records but no etching`);
    const isWhole = this.#hasFirst && this.#hasBlocks && !hasGap(this.#lowest, this.#blocks, this.#tip, sources);
    if (isWhole !== hasCounts)
      this.#findings.add(`the etchings ${hasCounts ? 'have' : 'lack'} counts of mints and burns, against the rule`);
  }
}

/** True when some block between the first that was read and the tip was not, and the output does not have it. */
function hasGap(lowest: number, blocks: readonly BlockDigest[], tip: number, sources: Sources): boolean {
  const read = joinRuns(sources.flatMap((source) => source.blocks));
  const first = read[0]?.[0];
  if (first === undefined) return false;
  const low = Math.max(first, lowest);
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
