/**
 * Writes the files of rendered batches. Runs in a writer thread (writer.ts), or in the main thread for small builds.
 */
import type { Site } from '../pages/site.ts';
import type { Batch } from '../render/servedOrder.ts';
import { emitFiles } from './pageFiles.ts';
import { PathList } from './pathList.ts';
import { CountingSink, DiskSink } from './sinks.ts';

export interface WriterTarget {
  /** The output folder. */
  readonly root: string;
  /** The file that lists the paths of new and changed files. */
  readonly added: string;
  /** Whether unchanged files are listed too. */
  readonly listKept: boolean;
}

/** Page counts of one block, including the pages of its transactions. */
export interface WrittenBlock {
  readonly height: number;
  readonly files: number;
  readonly bytes: number;
}

export interface WrittenBatch {
  readonly blocks: readonly WrittenBlock[];
  /** Number of files that already had the same bytes. */
  readonly kept: number;
}

/** Writes batches one after another, and counts their files per block. */
export class BatchWriter {
  readonly #site: Site;
  readonly #list: PathList | undefined;
  readonly #sink: DiskSink | CountingSink;

  /** `target` is undefined in a dry run: files are then counted and not written. */
  constructor(site: Site, target: WriterTarget | undefined) {
    this.#site = site;
    this.#list = target && new PathList(target.added);
    this.#sink = target === undefined ? new CountingSink() : new DiskSink(target.root, this.#list, target.listKept);
  }

  /** Writes the files of a batch and appends their paths to the list. Throws system errors. */
  write(batch: Batch): WrittenBatch {
    const { totals } = this.#sink;
    const blocks: WrittenBlock[] = [];
    const keptBefore = totals.kept;
    for (const block of batch.blocks) {
      const { files, bytes } = totals;
      emitFiles(batch, block, this.#site, this.#sink);
      blocks.push({ height: block.height, files: totals.files - files, bytes: totals.bytes - bytes });
    }
    this.#sink.flush();
    return { blocks, kept: totals.kept - keptBefore };
  }

  close(): void {
    this.#list?.close();
  }
}
