/**
 * Counts again what the files of figures say, while the blocks are read.
 */
import type { BlockFigures } from '../contract/stats.ts';
import { statsFilePath } from '../pages/paths.ts';
import { statsDocuments } from '../stats/documents.ts';
import { mostActive, noCounts, RuneTotals } from '../stats/figures.ts';
import { statsBytes } from '../stats/files.ts';
import type { FileSink } from '../write/pageFiles.ts';
import type { Activity } from './blocks.ts';

export class Recount {
  readonly #sink: Pick<FileSink, 'file'>;
  readonly #all: BlockFigures[] = [];
  readonly #totals = new RuneTotals();
  /** The blocks of the file that is counted, and their runes. */
  #blocks: BlockFigures[] = [];
  #runes = new RuneTotals();
  /** Whether it has a block that could not be counted. */
  #isPartial = false;
  #path: string | undefined;

  /** `sink` is given each file as it should be. */
  constructor(sink: Pick<FileSink, 'file'>) {
    this.#sink = sink;
  }

  /** Counts the block that these are all records of; heights ascend. */
  add(records: readonly Activity[]): void {
    const [first] = records;
    if (first === undefined) throw new Error('a block without records');
    const { block_height: height, block_hash: hash } = first.location;
    this.#turnTo(height);
    const block = { height, hash, timestamp: first.location.timestamp, transactions: 0, records: records.length, ...noCounts() };
    let txId = '';
    for (const { rune, operation, location } of records) {
      block[operation] += 1;
      block.timestamp = Math.min(block.timestamp, location.timestamp);
      if (location.tx_id !== txId) block.transactions += 1;
      txId = location.tx_id;
      this.#runes.add({ ...rune, records: 1, ...noCounts(), [operation]: 1 });
    }
    this.#blocks.push(block);
  }

  /** The block at this height cannot be read, so the file that it counts in is not compared. */
  skip(height: number): void {
    this.#turnTo(height);
    this.#isPartial = true;
  }

  /** Hands over the last file, and the documents about all blocks, each of which was counted. */
  finish(siteUrl: string | undefined): void {
    this.#endFile();
    const figures = { blocks: this.#all, runes: mostActive(this.#totals.all) };
    for (const [path, content] of statsDocuments(figures, siteUrl)) this.#sink.file(path, content);
  }

  /** Turns to the file of a height. */
  #turnTo(height: number): void {
    const path = statsFilePath(height);
    if (path !== this.#path) this.#endFile();
    this.#path = path;
  }

  #endFile(): void {
    const runes = this.#runes.sorted;
    for (const rune of runes) this.#totals.add(rune);
    for (const block of this.#blocks) this.#all.push(block);
    if (this.#path !== undefined && !this.#isPartial) this.#sink.file(this.#path, statsBytes({ blocks: this.#blocks, runes }));
    this.#blocks = [];
    this.#runes = new RuneTotals();
    this.#isPartial = false;
  }
}
