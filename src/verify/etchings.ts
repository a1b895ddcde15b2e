/**
 * Verifies etchings: counts mints and burns again from the records of the blocks, and renders every etching of every
 * level again. A level has the etchings that changed in its blocks, as they are after the last of these. So a level is
 * checked when all its blocks were counted, and no later block. The rest of an etching comes from the runes table, which
 * an output does not have.
 */
import { runeKey } from '../archive/balanceTables.ts';
import { type LevelRange, levelRanges } from '../archive/levels.ts';
import type { EtchingTables } from '../archive/listTables.ts';
import { documentsOf, mergeDocuments } from '../archiver/documents.ts';
import type { Manifest } from '../contract/schemas.ts';
import { messageOf } from '../errors.ts';
import { parseEtching } from '../etchings/parse.ts';
import type { BlockDigest } from '../output/digests.ts';
import { archivePath } from '../pages/paths.ts';
import type { NamedRune } from '../pages/search.ts';
import type { BuiltSite } from '../pages/site.ts';
import { type ArchiveVerification, EntrySum } from './archive.ts';
import type { Activity } from './blocks.ts';
import { type Findings, orFinding } from './findings.ts';
import { addNames } from './names.ts';
import { checkEtching, type EtchingChecks, EtchingList, type ReadEtching, SupplyRecount } from './supply.ts';

/** A level whose etchings were compared with the records. */
interface CheckedLevel extends LevelRange {
  /** Keys of its etchings. */
  readonly keys: readonly string[];
  /** Runes with mints or burns in its blocks. */
  readonly touched: ReadonlySet<string>;
}

export class EtchingsVerification {
  readonly #archive: ArchiveVerification;
  readonly #tables: EtchingTables;
  readonly #total: number;
  readonly #checks: EtchingChecks;
  readonly #findings: Findings;
  /** Levels whose blocks were not all counted. */
  readonly #left: LevelRange[];
  readonly #levels: CheckedLevel[] = [];

  private constructor(archive: ArchiveVerification, tables: EtchingTables, total: number, checks: EtchingChecks, findings: Findings) {
    this.#archive = archive;
    this.#tables = tables;
    this.#total = total;
    this.#checks = checks;
    this.#findings = findings;
    const { lists } = archive.archive.root;
    this.#left = lists === undefined ? [] : levelRanges(archive.tip, lists);
  }

  /** Returns undefined for an output without etchings. */
  static of(
    site: BuiltSite,
    { lists, sources = [] }: Manifest,
    archive: ArchiveVerification | undefined,
    findings: Findings,
  ): EtchingsVerification | undefined {
    const facts = lists?.etchings;
    const tables = archive?.archive.root.lists?.etchings;
    if ((facts === undefined) !== (tables === undefined))
      findings.add('the manifest and the root of the archive differ in whether there are etchings');
    if (facts === undefined || archive === undefined || tables === undefined) return undefined;
    const checks = { site, hasCounts: facts.counts === true, recount: new SupplyRecount(), sources };
    return new EtchingsVerification(archive, tables, facts.total, checks, findings);
  }

  /** Yields the etchings as they are now, oldest first. They are read anew, because all of them may not fit into memory. */
  async *all(): AsyncGenerator<ReadEtching> {
    const levels = this.#tables.levels.map((level) => documentsOf(this.#archive.archive, level));
    for await (const { values } of mergeDocuments(levels, (same) => same.at(-1) ?? [])) {
      const [json = ''] = values;
      yield parseEtching(json, this.#checks.site.dialect);
    }
  }

  /** Returns the premines of runes by their ids, in smallest units. */
  async premines(): Promise<Map<string, bigint>> {
    const premines = new Map<string, bigint>();
    try {
      for await (const { id, premine } of this.all()) premines.set(id, BigInt(premine));
    } catch {
      // The check of its level says what is wrong with an etching.
    }
    return premines;
  }

  /** Returns all runes for the files of the search; undefined if an etching is damaged. */
  async named(): Promise<NamedRune[] | undefined> {
    const runes: NamedRune[] = [];
    try {
      for await (const { id, number, name, spaced_name, symbol } of this.all()) runes.push({ id, number, name, spaced_name, symbol });
    } catch {
      return undefined;
    }
    return runes;
  }

  /** Counts the records of a block. Heights must ascend. */
  add(height: number, records: readonly Activity[]): void {
    this.#checkBelow(height);
    this.#checks.recount.add(records);
  }

  /** Checks the etchings after all blocks were added. */
  async finish(blocks: readonly BlockDigest[]): Promise<void> {
    this.#checkBelow(Number.POSITIVE_INFINITY);
    if (this.#findings.count > 0) return;
    const levels = this.#levels.map((level) => ({ ...level, sum: new EntrySum(), found: 0, isRight: true }));
    const list = new EtchingList(this.#checks, blocks, this.#archive.tip, this.#findings);
    for await (const etching of this.all()) {
      const { block_height: height } = etching;
      const key = runeKey(list.count);
      for (const level of levels) {
        if (height >= level.first && height <= level.last) addNames({ ...etching, ordinal: list.count }, level.sum);
        if (!this.#hasChanged(etching, level)) continue;
        level.isRight &&= level.keys[level.found] === key;
        level.found += 1;
      }
      list.add(etching);
    }
    const name = archivePath(this.#archive.archive.name.root);
    if (this.#tables.total !== this.#total || list.count !== this.#total)
      this.#findings.add(`${name} has another number of etchings than the manifest`);
    for (const { first, last, keys, found, isRight } of levels)
      if (!isRight || keys.length !== found) this.#findings.add(`${name} has other etchings for the blocks ${first} to ${last}`);
    if (this.#tables.levels.length !== levels.filter(({ keys }) => keys.length > 0).length)
      this.#findings.add(`${name} has etchings of other blocks`);
    this.#archive.checkTable('table of names', this.#archive.archive.root.lists?.names ?? [], levels);
    list.finish();
    this.#checks.recount.clear();
  }

  /** Checks the levels that end below a height, whose blocks were all counted. */
  #checkBelow(height: number): void {
    for (let range = this.#left[0]; range !== undefined && range.last < height; range = this.#left[0]) {
      this.#left.shift();
      this.#checkLevel(range);
    }
  }

  #checkLevel(range: LevelRange): void {
    const keys: string[] = [];
    const { archive } = this.#archive;
    const level = this.#tables.levels.find(({ first, last }) => first === range.first && last === range.last);
    orFinding(this.#findings, () => {
      for (const { key, values } of level === undefined ? [] : documentsOf(archive, level)) {
        keys.push(key);
        try {
          if (values.length !== 1) throw new Error('has several values');
          checkEtching(values[0] ?? '', range.last, this.#checks);
        } catch (error) {
          this.#findings.add(`in the blocks ${range.first} to ${range.last}, the etching ${key}: ${messageOf(error)}`);
        }
      }
    });
    this.#levels.push({ ...range, keys, touched: this.#checks.recount.takeTouched() });
  }

  /** True when an etching changed in the blocks of a level. */
  #hasChanged(etching: ReadEtching, { first, last, touched }: CheckedLevel): boolean {
    if (etching.block_height > last) return false;
    return etching.block_height >= first || (this.#checks.hasCounts && (touched.has(etching.id) || hasMoved(etching, first + 1, last + 1)));
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
