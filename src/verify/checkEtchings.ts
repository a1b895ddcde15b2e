/**
 * Verifies etchings: counts mints and burns again from the records, and renders every etching of every level
 * (format/levels.ts) again. A level has the etchings that changed in its blocks, as they are after its last block. So a
 * level is checked at the moment when all its blocks, but no later blocks, were counted. Other values of an etching
 * cannot be checked, because a build does not contain the runes table of its input.
 */
import type { Manifest } from '../contract/schemas.ts';
import { joinRuns } from '../contract/sources.ts';
import { documentsOf, mergeDocuments } from '../engine/archive/documentWriter.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { messageOf } from '../errors.ts';
import { type LevelRange, levelRanges } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import { runeNameText } from '../lists/allRuneNames.ts';
import { type Counts, type Etching, renderEtching, runeKey } from '../lists/etchings.ts';
import { mintedUnits, parseCounts, parseEtching } from '../lists/parseEtching.ts';
import type { NamedRune } from '../lists/searchFiles.ts';
import { archivePath } from '../pages/filePaths.ts';
import type { Activity } from './checkBlock.ts';
import { addNames, checkTable, Fingerprints } from './checkTables.ts';
import { SupplyRecount } from './countSupply.ts';
import { orFinding } from './findings.ts';
import type { Verification } from './verification.ts';

type Facts = NonNullable<NonNullable<Manifest['lists']>['etchings']>;

/** An etching as read from its JSON, without counts. */
type ReadEtching = Omit<Etching, 'counts'>;

/** A level after its etchings were compared with the records. */
interface CheckedLevel extends LevelRange {
  /** Keys of the etchings in the level. */
  readonly keys: readonly string[];
  /** Runes with mints or burns in its blocks. */
  readonly touched: ReadonlySet<string>;
}

/** Stored name of a rune, and the level that has this name. */
type StoredName = LevelRange & { readonly key: string; readonly text: string | undefined };

export class EtchingsVerification {
  readonly #recount = new SupplyRecount();
  /** Levels that are not checked yet, because some of their blocks were not counted. The lowest comes first. */
  readonly #left: LevelRange[];
  readonly #levels: CheckedLevel[] = [];

  private constructor(
    private readonly verification: Verification,
    private readonly archive: StoredArchive,
    private readonly lists: ListTables,
    private readonly facts: Facts,
  ) {
    this.#left = levelRanges(verification.site.tip, lists, undefined, lists.start?.height);
  }

  /** Returns undefined for a build without etchings. */
  static of(verification: Verification, archive: StoredArchive | undefined): EtchingsVerification | undefined {
    const facts = verification.manifest.lists?.etchings;
    const lists = archive?.root.lists;
    if ((facts === undefined) !== (lists?.etchings === undefined))
      verification.findings.add('the manifest and the root of the archive differ in whether there are etchings');
    if (facts === undefined || archive === undefined || lists?.etchings === undefined) return undefined;
    return new EtchingsVerification(verification, archive, lists, facts);
  }

  /**
   * Yields the newest version of each etching, oldest etching first. Each call reads the files again, because the
   * etchings of a mirror may not fit into memory.
   */
  async *all(): AsyncGenerator<ReadEtching> {
    const levels = (this.lists.etchings?.levels ?? []).map((level) => documentsOf(this.archive, level));
    for await (const { values } of mergeDocuments(levels, (same) => same.at(-1) ?? [])) {
      const [json = ''] = values;
      yield parseEtching(json, this.verification.site.dialect);
    }
  }

  /** Returns the premines of runes by their ids, in smallest units. */
  async premines(): Promise<Map<string, bigint>> {
    const premines = new Map<string, bigint>();
    try {
      for await (const { id, premine } of this.all()) premines.set(id, BigInt(premine));
    } catch {
      // Ignores a damaged etching, because the check of its level reports it.
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

  *#storedNames(): Generator<StoredName, undefined> {
    for (const level of this.lists.etchings?.runes ?? [])
      for (const { key, values } of documentsOf(this.archive, level))
        yield { ...level, key, text: values.length === 1 ? values[0] : undefined };
    return undefined;
  }

  /**
   * Counts the records of a block. First checks the levels that end below the block: they must match the counts without
   * this block. Heights must ascend.
   */
  add(height: number, records: readonly Activity[]): void {
    this.#checkBelow(height);
    this.#recount.add(records);
  }

  /** Checks the remaining levels, the order of etchings, and their names. Call it after `add` of every block. */
  async finish(): Promise<void> {
    const { findings } = this.verification;
    this.#checkBelow(Number.POSITIVE_INFINITY);
    if (findings.count > 0) return;
    const levels = this.#levels.map((level) => ({ ...level, entries: new Fingerprints(), found: 0, isRight: true }));
    const stored = this.#storedNames();
    const nextName = (): IteratorResult<StoredName, undefined> | undefined => orFinding(findings, () => stored.next());
    let areNamesRight = true;
    const list = new EtchingList(this.verification, this.lists.start?.height);
    for await (const etching of this.all()) {
      const { block_height: height } = etching;
      const key = runeKey(list.count);
      for (const level of levels) {
        if (height >= level.first && height <= level.last) addNames(etching, list.count, level.entries);
        if (!this.#hasChanged(etching, level)) continue;
        level.isRight &&= level.keys[level.found] === key;
        level.found += 1;
      }
      const named: StoredName | undefined = areNamesRight ? nextName()?.value : undefined;
      const isAt: boolean = named?.key === key && height >= named.first && height <= named.last;
      areNamesRight &&= isAt && named?.text === runeNameText(etching);
      list.add(etching);
    }
    const name = archivePath(this.archive.name.root);
    const { etchings, names } = this.lists;
    if (etchings?.total !== this.facts.total || list.count !== this.facts.total)
      findings.add(`${name} has another number of etchings than the manifest`);
    for (const { first, last, keys, found, isRight } of levels)
      if (!isRight || keys.length !== found) findings.add(`${name} has other etchings for the blocks ${first} to ${last}`);
    if (etchings?.levels.length !== levels.filter(({ keys }) => keys.length > 0).length)
      findings.add(`${name} has etchings of other blocks`);
    const ranges = (all: readonly LevelRange[]) => all.map(({ first, last }) => `${first}-${last}`).join();
    const withRunes = levels.filter(({ entries }) => entries.count > 0);
    if (!areNamesRight || nextName()?.done !== true || ranges(this.lists.etchings?.runes ?? []) !== ranges(withRunes))
      findings.add(`${name} has other names of runes than its etchings`);
    checkTable('table of names', names, levels, this.archive, findings);
    for (const id of this.#recount.ids) if (!list.ids.has(id)) findings.add(`the rune ${id} has records but no etching`);
    const hasCounts = this.facts.counts === true;
    if (list.isComplete() !== hasCounts)
      findings.add(
        `the etchings ${hasCounts ? 'have counts of mints and burns, which the data does not allow' : 'lack counts of mints and burns, which the data allows'}`,
      );
    this.#recount.clear();
  }

  /** Checks the levels that end below a height, because all their blocks were counted. */
  #checkBelow(height: number): void {
    for (let range = this.#left[0]; range !== undefined && range.last < height; range = this.#left[0]) {
      this.#left.shift();
      this.#checkLevel(range);
    }
  }

  #checkLevel({ first, last }: LevelRange): void {
    const { findings } = this.verification;
    const keys: string[] = [];
    const level = this.lists.etchings?.levels.find((one) => one.first === first && one.last === last);
    orFinding(findings, () => {
      for (const { key, values } of level === undefined ? [] : documentsOf(this.archive, level)) {
        keys.push(key);
        try {
          if (values.length !== 1) throw new Error(`has ${values.length} values instead of one`);
          this.#checkEtching(values[0] ?? '', last);
        } catch (error) {
          findings.add(`in the blocks ${first} to ${last}, the etching ${key}: ${messageOf(error)}`);
        }
      }
    });
    this.#levels.push({ first, last, keys, touched: this.#recount.takeTouched() });
  }

  /** Throws when the JSON of an etching does not match the records up to block `tip`. */
  #checkEtching(json: string, tip: number): void {
    const { dialect } = this.verification.site;
    const etching = parseEtching(json, dialect);
    if (tip === this.lists.start?.height) this.#begin(etching, parseCounts(json));
    const counts = this.facts.counts === true ? this.#recount.countsOf(etching) : undefined;
    if (renderEtching({ ...etching, counts }, dialect, tip) !== json) throw new Error(`${etching.id} does not match its records`);
  }

  /**
   * Sets the rune's counts to those that its etching has in the start (startOutputs.ts). The digest of the start proves
   * these counts (checkLedgerDigest.ts).
   */
  #begin(etching: ReadEtching, counts: Counts): void {
    this.#recount.begin(etching.id, { ...counts, minted: mintedUnits(etching, counts.mints) });
  }

  /** True if an etching changed in the blocks of a level, so that the level must have this etching. */
  #hasChanged(etching: ReadEtching, { first, last, touched }: CheckedLevel): boolean {
    if (etching.block_height > last) return false;
    if (etching.block_height >= first) return true;
    return this.facts.counts === true && (touched.has(etching.id) || hasMoved(etching, first + 1, last + 1));
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

  constructor(
    private readonly verification: Verification,
    /** Height of the start (startOutputs.ts); -1 without a start. */
    private readonly start: number = -1,
  ) {
    this.#heights = new Set(verification.blocks.map(({ height }) => height));
    this.#lowest = verification.site.tip;
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
    this.#hasBlocks &&= height <= this.start || this.#heights.has(height);
    this.#lowest = Math.min(this.#lowest, height);
  }

  /**
   * True if the build has all mints and burns of these etchings, according to the manifest's list of the blocks that
   * were read.
   */
  isComplete(): boolean {
    const { manifest, blocks, site } = this.verification;
    if (!this.#hasFirst || !this.#hasBlocks) return false;
    const read = joinRuns((manifest.sources ?? []).flatMap((source) => source.blocks));
    const first = read[0]?.[0];
    // The counts of the start include the records up to its block, so the build must not have records of these blocks.
    if (this.start >= 0 && (first !== this.start + 1 || (blocks[0]?.height ?? first) < first)) return false;
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
