/**
 * Makes and writes the files of rendered batches: in a writer thread (writer.ts), or in the build's own when there is little to write.
 */
import type { Site } from '../pages/lists.ts';
import type { Batch } from '../render/servedOrder.ts';
import { emitFiles } from './pageFiles.ts';
import { PathList } from './pathList.ts';
import { CountingSink, DiskSink } from './sinks.ts';

export interface WriterTarget {
  /** The output folder. */
  readonly root: string;
  /** The file that the paths of new and changed files are written to. */
  readonly added: string;
  /** Whether files that were there already with the same bytes are listed too. */
  readonly listKept: boolean;
}

/** The pages of a block on disk, those of its transactions included. */
export interface WrittenBlock {
  readonly height: number;
  readonly files: number;
  readonly bytes: number;
}

export interface WrittenBatch {
  readonly blocks: readonly WrittenBlock[];
  /** Files that had the same bytes already. */
  readonly kept: number;
}

export class BatchWriter {
  readonly #site: Site;
  readonly #list: PathList | undefined;
  readonly #sink: DiskSink | CountingSink;

  /** Without a target it only counts, for a dry run. */
  constructor(site: Site, target: WriterTarget | undefined) {
    this.#site = site;
    this.#list = target && new PathList(target.added);
    this.#sink = target === undefined ? new CountingSink() : new DiskSink(target.root, this.#list, target.listKept);
  }

  /** Returns when all files and their paths are written. Throws system errors. */
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
