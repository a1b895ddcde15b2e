/**
 * Verifies etchings: counts mints and burns again from the records of the blocks, and makes the JSON of every etching
 * and the tables of names again. The rest of an etching comes from the runes table, which an output does not have.
 */
import { join } from 'node:path';
import type { Manifest } from '../contract/schemas.ts';
import { messageOf } from '../errors.ts';
import { etchingPaths, namesFiles } from '../etchings/files.ts';
import { namesOf } from '../etchings/names.ts';
import type { BlockDigest } from '../output/digests.ts';
import { etchingsPath } from '../pages/paths.ts';
import { type BuiltSite, maximumLimit } from '../pages/site.ts';
import type { FileSink } from '../write/pageFiles.ts';
import { readRegularFile } from '../write/regularFile.ts';
import type { ArchiveVerification } from './archive.ts';
import { ArchivedEtchings } from './archivedEtchings.ts';
import type { Activity } from './blocks.ts';
import type { Findings } from './findings.ts';
import { checkList, type EtchingChecks, type ReadEtching, readPage, SupplyRecount } from './supply.ts';

export class EtchingsVerification {
  readonly #root: string;
  readonly #tip: number;
  readonly #total: number;
  readonly #checks: EtchingChecks;
  readonly #archived: ArchivedEtchings | undefined;
  readonly #findings: Findings;

  private constructor(
    root: string,
    { tip }: BuiltSite,
    total: number,
    checks: EtchingChecks,
    archive: ArchiveVerification | undefined,
    findings: Findings,
  ) {
    this.#root = root;
    this.#tip = tip;
    this.#total = total;
    this.#checks = checks;
    this.#archived = archive && new ArchivedEtchings(archive.archive, archive.tip, checks, findings);
    this.#findings = findings;
  }

  /** Returns undefined for an output without etchings. */
  static of(
    root: string,
    site: BuiltSite,
    { lists, sources = [] }: Manifest,
    archive: ArchiveVerification | undefined,
    findings: Findings,
  ): EtchingsVerification | undefined {
    const facts = lists?.etchings;
    if (facts === undefined) return undefined;
    const checks = { site, hasCounts: facts.counts === true, recount: new SupplyRecount(), sources };
    return new EtchingsVerification(root, site, facts.total, checks, archive, findings);
  }

  /** Counts the records of a block. Heights must ascend. */
  add(height: number, records: readonly Activity[]): void {
    this.#archived?.checkBelow(height);
    this.#checks.recount.add(records);
  }

  /**
   * Checks the etchings after all blocks were added. `sink` receives files with their expected content. Returns the
   * etchings, oldest first.
   */
  finish(blocks: readonly BlockDigest[], sink: Pick<FileSink, 'file'>): readonly ReadEtching[] {
    const all = this.#archived === undefined ? this.#readFiles(this.#tip) : this.#archived.finish(this.#total);
    if (this.#findings.count > 0) return all;
    checkList(all, this.#checks, blocks, this.#tip, this.#findings);
    if (this.#archived !== undefined) return all;
    const runes = all.map((etching, ordinal) => ({ ordinal, names: namesOf(etching) }));
    for (const [path, content] of namesFiles(runes, this.#total)) sink.file(path, content);
    return all;
  }

  /** The paths of the files of layout `files`. */
  get paths(): Iterable<string> {
    return etchingPaths(this.#checks.site, { total: this.#total });
  }

  #readFiles(tip: number): ReadEtching[] {
    const pageSize = maximumLimit(this.#checks.site);
    const all: ReadEtching[] = [];
    for (let page = 0; page * pageSize < this.#total; page += 1) {
      const path = etchingsPath(page);
      try {
        const found = readPage(readRegularFile(join(this.#root, path)).toString('utf8'), tip, this.#checks);
        if (found.length !== Math.min(this.#total - page * pageSize, pageSize)) throw new Error('is not a complete page');
        for (const etching of found) all.push(etching);
      } catch (error) {
        this.#findings.add(`${path}: ${messageOf(error)}`);
      }
    }
    return all;
  }
}
