/** Computes the stats again from the records of the blocks, and makes the stats files that the output must have. */
import type { BlockStats, RuneStats } from '../contract/statsSchemas.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import { mostActive, noCounts, RuneTotals, statsOfAll } from '../output/stats/blockStats.ts';
import { statsDocuments } from '../output/stats/statsDocuments.ts';
import { statsBytes } from '../output/stats/statsFiles.ts';
import { statsFilePath } from '../pages/filePaths.ts';
import type { Activity } from './checkBlock.ts';

export class Recount {
  readonly #all: BlockStats[] = [];
  readonly #totals = new RuneTotals();
  /** Blocks and runes of the current stats file. */
  #blocks: BlockStats[] = [];
  #runes = new RuneTotals();
  /** True if the current file has a block that could not be read. */
  #isPartial = false;
  #path: string | undefined;

  /** `sink` receives each file with its expected content. */
  constructor(private readonly sink: Pick<FileSink, 'file'>) {}

  /** Counts a block. Heights must ascend. An unreadable block has no `records`; its stats file is not compared. */
  add(height: number, records: readonly Activity[]): void {
    const path = statsFilePath(height);
    if (path !== this.#path) this.#endFile();
    this.#path = path;
    const [first] = records;
    if (first === undefined) {
      this.#isPartial = true;
      return;
    }
    const { block_hash: hash, timestamp } = first.location;
    const block = { height, hash, timestamp, transactions: 0, records: records.length, ...noCounts() };
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

  /** Runes of all records, in no particular order. Complete only after `finish`. */
  get runes(): Iterable<RuneStats> {
    return this.#totals.all;
  }

  /** Sends the last stats file and the documents about all blocks to the sink. Call it after `add` of every block. */
  finish(siteUrl: string | undefined): void {
    this.#endFile();
    const stats = statsOfAll(this.#all, mostActive(this.#totals.all));
    for (const [path, content] of statsDocuments(stats, siteUrl)) this.sink.file(path, content);
  }

  #endFile(): void {
    const runes = this.#runes.sorted;
    for (const rune of runes) this.#totals.add(rune);
    for (const block of this.#blocks) this.#all.push(block);
    if (this.#path !== undefined && !this.#isPartial) this.sink.file(this.#path, statsBytes({ blocks: this.#blocks, runes }));
    this.#blocks = [];
    this.#runes = new RuneTotals();
    this.#isPartial = false;
  }
}
