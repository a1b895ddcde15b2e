/**
 * Verifies etchings: counts mints and burns again from the records, and makes the documents of every level
 * (format/levels.ts) again. A level has the etchings that changed in its blocks, as they are after its last block. So
 * the mints and burns of each level are counted separately. Names and place of an etching must be those of its record,
 * if the records are from a node. Other values of an etching cannot be checked, because a build does not contain the
 * runes table of its input. These values are taken from the etching's newest document.
 */
import { createHash } from 'node:crypto';
import { joinRuns } from '../contract/sources.ts';
import { documentsOf, lineOf, mergeDocuments } from '../engine/archive/documentWriter.ts';
import { messageOf } from '../errors.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { levelRanges } from '../format/levels.ts';
import type { EtchingTables } from '../format/listTables.ts';
import { runeNameText } from '../lists/allRuneNames.ts';
import { type Etching, renderEtching, runeKey } from '../lists/etchings.ts';
import { parseEtching } from '../lists/parseEtching.ts';
import type { NamedRune } from '../lists/searchFiles.ts';
import type { Activity } from './checkBlock.ts';
import { addNames, checkLists, type ExpectedEntries, Fingerprints, levelAt, namesOf } from './checkTables.ts';
import { comparedLevels } from './compareLevels.ts';
import { addSupplies, countsOf, NO_SUPPLY, type Supply, sumOf } from './countSupply.ts';
import { isFromNode, type ListsCheck, type Verification } from './verification.ts';

/** An etching as read from its JSON, without counts. */
type ReadEtching = Omit<Etching, 'counts'>;

/** Expected content of a level. `entries` has the level's names (lists/names.ts). */
interface ExpectedLevel extends ExpectedEntries {
  /** Mints and burns in the blocks of the level, by rune. */
  readonly supplies: Map<string, Supply>;
}

export class EtchingsVerification {
  readonly #levels: readonly ExpectedLevel[];
  /** Ids of runes with records, each with a digest of its etching record (`placeOf`). */
  readonly #runes = new Map<string, string | undefined>();

  private constructor(
    private readonly check: ListsCheck,
    private readonly etchings: EtchingTables,
  ) {
    const ranges = levelRanges(check.site.tip, check.lists);
    this.#levels = ranges.map((range) => ({ ...range, entries: new Fingerprints(), supplies: new Map() }));
  }

  /** Returns undefined for a build without etchings. */
  static of(verification: Verification, check: ListsCheck | undefined): EtchingsVerification | undefined {
    const hasEtchings = verification.manifest.lists?.etchings !== undefined;
    const etchings = check?.lists.etchings;
    if (hasEtchings !== (etchings !== undefined))
      verification.findings.add('the manifest and the root of the archive differ in whether there are etchings');
    return hasEtchings && check !== undefined && etchings !== undefined ? new EtchingsVerification(check, etchings) : undefined;
  }

  /**
   * Yields the newest version of each etching, oldest etching first. Each call reads the files again, because the
   * etchings of a mirror may not fit into memory. Throws an ArchiveError or a ChangedArchiveError for damage.
   */
  async *all(): AsyncGenerator<ReadEtching> {
    const levels = this.etchings.levels.map((level) => documentsOf(this.check.archive, level));
    for await (const { key, values } of mergeDocuments(levels, (same) => same.at(-1) ?? [])) {
      const [json = '', ...others] = values;
      if (others.length > 0) throw new ArchiveError(`the etching ${key} has ${values.length} values instead of one`);
      yield ofEtching(key, () => parseEtching(json, this.check.site.dialect));
    }
  }

  /** Returns the premines of runes by their ids, in smallest units. */
  async premines(): Promise<Map<string, bigint>> {
    const premines = new Map<string, bigint>();
    try {
      for await (const { id, premine } of this.all()) premines.set(id, BigInt(premine));
    } catch {
      // Ignores a damaged etching, because `finish` reports it.
    }
    return premines;
  }

  /** Returns all runes for the search files; undefined if an etching is damaged. */
  async named(): Promise<NamedRune[] | undefined> {
    const runes: NamedRune[] = [];
    try {
      for await (const { id, number, name, spaced_name, symbol } of this.all()) runes.push({ id, number, name, spaced_name, symbol });
    } catch {
      return undefined;
    }
    return runes;
  }

  /** Counts the records of a block. */
  add(height: number, records: readonly Activity[]): void {
    for (const { rune, operation, location } of records)
      if (operation === 'etching') this.#runes.set(rune.id, placeOf({ ...rune, ...location }));
      else if (!this.#runes.has(rune.id)) this.#runes.set(rune.id, undefined);
    const level = levelAt(this.#levels, height);
    if (level !== undefined) addSupplies(records, level.supplies);
  }

  /**
   * Makes the documents of all levels again, and compares them. Also compares the order of etchings, and their names.
   * Call it after `add` of every block. Rejects with an ArchiveError or a ChangedArchiveError for damage.
   */
  async finish(): Promise<void> {
    const { findings, manifest, site, lists, rootPath } = this.check;
    const facts = manifest.lists?.etchings;
    const hasCounts = facts?.counts === true;
    const writer = comparedLevels(WHAT, this.etchings, this.check);
    const levels = this.#levels.map((level) => ({ ...level, etchings: writer('levels', level), runes: writer('runes', level) }));
    const list = new EtchingList(this.check);
    for await (const etching of this.all()) {
      const key = runeKey(list.count);
      const own = levelAt(levels, etching.block_height);
      if (own !== undefined) addNames(etching, list.count, own.entries);
      own?.runes.addLine(lineOf({ key, values: [runeNameText(etching)] }));
      let supply = NO_SUPPLY;
      for (const level of levels) {
        const added = level.supplies.get(etching.id);
        supply = sumOf(supply, added);
        const isOlder = etching.block_height < level.first;
        const hasChanged = isOlder && hasCounts && (added !== undefined || hasMoved(etching, level.first + 1, level.last + 1));
        if (level !== own && !hasChanged) continue;
        const counts = hasCounts ? countsOf(supply, etching) : undefined;
        const json = ofEtching(key, () => renderEtching({ ...etching, counts }, site.dialect, level.last));
        level.etchings.addLine(lineOf({ key, values: [json] }));
      }
      list.add(etching);
      // Rune 1:0 has no record, because the protocol itself etched it.
      if (
        isFromNode(manifest) &&
        etching.id !== '1:0' &&
        list.has(etching.block_height) &&
        this.#runes.get(etching.id) !== placeOf(etching)
      )
        findings.add(`the etching ${etching.id} does not match its record`);
    }
    if (this.etchings.total !== facts?.total || list.count !== facts.total)
      findings.add(`${rootPath} has another number of etchings than the manifest`);
    const made = {
      levels: levels.flatMap((level) => level.etchings.finish() ?? []),
      runes: levels.flatMap((level) => level.runes.finish() ?? []),
    };
    if (JSON.stringify(made) !== JSON.stringify({ levels: this.etchings.levels, runes: this.etchings.runes }))
      findings.add(`${rootPath} has etchings of other blocks`);
    checkLists(namesOf(lists.names, lists.page), levels, this.check);
    for (const id of this.#runes.keys()) if (!list.ids.has(id)) findings.add(`the rune ${id} has records but no etching`);
    findings.compare(rootPath, 'counts of mints and burns', hasCounts, list.isComplete());
    for (const { supplies } of levels) supplies.clear();
    this.#runes.clear();
  }
}

const WHAT = { levels: 'data of the etching with the ordinal', runes: 'names of the rune with the ordinal' } as const;

/** Returns a short digest of the names and the place of an etching, because a mirror has many etchings. */
const placeOf = ({ number, name, spaced_name, block_hash, block_height, tx_id, tx_index, timestamp }: Placed): string =>
  createHash('sha256')
    .update(JSON.stringify([number, name, spaced_name, block_hash.slice(-64), block_height, tx_id.slice(-64), tx_index, timestamp]))
    .digest('base64')
    .slice(0, 16);

type Placed = Pick<ReadEtching, 'number' | 'name' | 'spaced_name' | 'block_hash' | 'block_height' | 'tx_id' | 'tx_index' | 'timestamp'>;

/** Throws an ArchiveError that names the etching if `read` throws. */
function ofEtching<Result>(key: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw new ArchiveError(`the etching ${key}: ${messageOf(error)}`);
  }
}

/** True when the mint window of a rune opens or closes at a height from `from` to `to`. */
function hasMoved(etching: ReadEtching, from: number, to: number): boolean {
  const { terms_height_start, terms_height_end, terms_offset_start, terms_offset_end, block_height } = etching;
  const isIn = (term: string | null, base: number) => {
    if (term === null) return false;
    const height = BigInt(base) + BigInt(term);
    return height >= from && height <= to;
  };
  return (
    [terms_height_start, terms_height_end].some((term) => isIn(term, 0)) ||
    [terms_offset_start, terms_offset_end].some((term) => isIn(term, block_height))
  );
}

/** Checks the order of etchings, and whether the data is complete enough to count mints and burns. */
class EtchingList {
  readonly #heights: ReadonlySet<number>;
  readonly ids = new Set<string>();
  #last: ReadEtching | undefined;
  #hasFirst = false;
  #hasBlocks = true;
  #lowest: number;

  constructor(private readonly verification: Verification) {
    this.#heights = new Set(verification.blocks.map(({ height }) => height));
    this.#lowest = verification.site.tip;
  }

  /** True if the build has records of this block. */
  has(height: number): boolean {
    return this.#heights.has(height);
  }

  get count(): number {
    return this.ids.size;
  }

  add(etching: ReadEtching): void {
    const { site, findings } = this.verification;
    const { id, number, block_height: height } = etching;
    if (this.#last !== undefined && !isBefore(this.#last, etching)) findings.add(`the etching ${id} is not in order`);
    if (height > site.tip) findings.add(`the etching ${id} is above the last block that was read`);
    this.#last = etching;
    this.ids.add(id);
    this.#hasFirst ||= number === 0;
    this.#hasBlocks &&= this.#heights.has(height);
    this.#lowest = Math.min(this.#lowest, height);
  }

  /**
   * True if the build has all mints and burns of these etchings, according to the manifest's list of the blocks that
   * were read.
   */
  isComplete(): boolean {
    const { manifest, blocks, site } = this.verification;
    const read = joinRuns((manifest.sources ?? []).flatMap((source) => source.blocks));
    // Without records, there are no runes if all blocks were read (engine/state/completeHistory.ts).
    const isEmpty = blocks.length === 0 && read.some(([from, to]) => from === 0 && to >= site.tip);
    if (!(this.#hasFirst || isEmpty) || !this.#hasBlocks) return false;
    const first = read[0]?.[0];
    if (first === undefined) return true;
    const low = Math.max(first, this.#lowest);
    const known = joinRuns([...read, ...blocks.map(({ height }): [number, number] => [height, height])]);
    return low > site.tip || known.some(([from, to]) => from <= low && site.tip <= to);
  }
}

function isBefore(a: ReadEtching, b: ReadEtching): boolean {
  if (a.block_height !== b.block_height) return a.block_height < b.block_height;
  if (a.tx_index !== b.tx_index) return a.tx_index < b.tx_index;
  if (a.number !== b.number) return a.number < b.number;
  return Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) < 0;
}
