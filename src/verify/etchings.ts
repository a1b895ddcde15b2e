/**
 * Verifies etchings: counts mints and burns again from the records of the blocks, and makes the JSON of every etching
 * and the files of names again. The rest of an etching comes from the runes table, which an output does not have.
 */
import { join } from 'node:path';
import type { Manifest } from '../contract/schemas.ts';
import { messageOf } from '../errors.ts';
import { etchingPaths, namesFiles } from '../etchings/files.ts';
import { namesOf } from '../etchings/names.ts';
import { parseEtching } from '../etchings/parse.ts';
import { type Counts, type Etching, renderEtching } from '../etchings/render.ts';
import type { BlockDigest } from '../output/digests.ts';
import { readEtchingPage } from '../pages/etchingFiles.ts';
import { etchingsPath } from '../pages/paths.ts';
import { maximumLimit, type Site } from '../pages/site.ts';
import type { FileSink } from '../write/pageFiles.ts';
import { readRegularFile } from '../write/regularFile.ts';
import type { Activity } from './blocks.ts';
import type { Findings } from './findings.ts';

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
      if (amount === undefined) continue;
      const decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      sums.decimals = sums.decimals === undefined || sums.decimals === decimals ? decimals : -1;
      const units = BigInt(amount.replace('.', ''));
      if (operation === 'mint') sums.minted += units;
      else sums.burned += units;
    }
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

/** Checks the etchings of an output, after all its blocks were counted. Returns the paths of their files. */
export function verifyEtchings(
  root: string,
  site: Site,
  { lists }: Manifest,
  blocks: readonly BlockDigest[],
  recount: SupplyRecount,
  sink: Pick<FileSink, 'file'>,
  findings: Findings,
): string[] {
  const facts = lists?.etchings;
  if (facts === undefined) return [];
  const tip = blocks.at(-1)?.height ?? -1;
  const all: Omit<Etching, 'counts'>[] = [];
  for (let page = 0; page * maximumLimit(site) < facts.total; page += 1) {
    const path = etchingsPath(page);
    try {
      const etchings = readEtchingPage(readRegularFile(join(root, path)).toString('utf8'));
      if (etchings?.length !== Math.min(facts.total - page * maximumLimit(site), maximumLimit(site)))
        throw new Error('is not a complete page');
      for (const text of etchings) {
        const etching = parseEtching(text, site.dialect);
        const counts = facts.counts === true ? recount.countsOf(etching) : undefined;
        if (renderEtching({ ...etching, counts }, site.dialect, tip) !== text) throw new Error(`${etching.id} is not as its records say`);
        all.push(etching);
      }
    } catch (error) {
      findings.add(`${path}: ${messageOf(error)}`);
    }
  }
  const paths = [...etchingPaths(site, facts)];
  if (findings.count > 0) return paths;
  checkList(all, facts.counts === true, blocks, recount, findings);
  for (const [path, content] of namesFiles(
    all.map((etching, ordinal) => ({ ordinal, names: namesOf(etching) })),
    facts.total,
  )) {
    sink.file(path, content);
  }
  return paths;
}

/** Checks that the list is complete and in order, and that it has counts when it can. */
function checkList(
  all: readonly Omit<Etching, 'counts'>[],
  hasCounts: boolean,
  blocks: readonly BlockDigest[],
  recount: SupplyRecount,
  findings: Findings,
): void {
  const tip = blocks.at(-1)?.height ?? -1;
  for (const [i, etching] of all.entries()) {
    const before = all[i - 1];
    if (before !== undefined && !isBefore(before, etching)) findings.add(`the etching ${etching.id} is not in order`);
    if (etching.block_height > tip) findings.add(`the etching ${etching.id} is above the highest block`);
  }
  const known = new Set(all.map(({ id }) => id));
  for (const id of recount.ids) if (!known.has(id)) findings.add(`the rune ${id} has records but no etching`);
  const heights = new Set(blocks.map(({ height }) => height));
  const isWhole = all.some(({ number }) => number === 0) && all.every(({ block_height }) => heights.has(block_height));
  if (isWhole !== hasCounts) findings.add(`the etchings ${hasCounts ? 'have' : 'lack'} counts of mints and burns, against the rule`);
}

type Place = Pick<Etching, 'block_height' | 'tx_index' | 'number' | 'id'>;

function isBefore(a: Place, b: Place): boolean {
  if (a.block_height !== b.block_height) return a.block_height < b.block_height;
  if (a.tx_index !== b.tx_index) return a.tx_index < b.tx_index;
  if (a.number !== b.number) return a.number < b.number;
  return Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) < 0;
}
