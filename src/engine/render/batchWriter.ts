/** Writes the files of rendered batches, in a writer thread (writerThread.ts) or, for small builds, in the main thread. */
import { PathList } from '../../disk/pathList.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { BlockSpool, type SpooledBlock } from './blockSpool.ts';
import { CountingSink, DiskSink } from './fileSinks.ts';
import { emitFiles } from './pageFiles.ts';
import type { Batch } from './servedOrder.ts';

export interface WriterTarget {
  /** Output folder. Undefined in a dry run, which only counts files. */
  readonly root: string | undefined;
  /** Path of the list of new and changed files. */
  readonly added: string;
  /** True to list unchanged files as well. */
  readonly listKept: boolean;
  /** Path of a new file for the compressed pages of an archive. Undefined for a build without pages in an archive. */
  readonly spool: string | undefined;
}

/** Pages of one block, including the pages of its transactions. */
export interface WrittenBlock {
  readonly height: number;
  /** Number of page files. 0 in layout `archive`, like `bytes`. */
  readonly files: number;
  readonly bytes: number;
  /** Position of the compressed pages. Undefined for a build without pages in an archive. */
  readonly spooled: SpooledBlock | undefined;
}

export interface WrittenBatch {
  readonly blocks: readonly WrittenBlock[];
  /** Number of files that already had the same bytes. */
  readonly kept: number;
}

/** Writes batches one after another, and counts their files per block. */
export class BatchWriter {
  readonly #list: PathList | undefined;
  readonly #sink: DiskSink | CountingSink;
  readonly #spool: BlockSpool | undefined;

  constructor(
    private readonly site: Site,
    { root, added, listKept, spool }: WriterTarget,
  ) {
    this.#list = root === undefined ? undefined : new PathList(added);
    this.#sink = root === undefined ? new CountingSink() : new DiskSink(root, this.#list, listKept);
    this.#spool = spool === undefined ? undefined : new BlockSpool(spool);
  }

  /** Writes the files of a batch, and appends the paths of new and changed files to `added`. Throws system errors. */
  write(batch: Batch): WrittenBatch {
    const { totals } = this.#sink;
    const blocks: WrittenBlock[] = [];
    const keptBefore = totals.kept;
    for (const block of batch.blocks) {
      const { files, bytes } = totals;
      const spooled = this.#spool?.add(batch, block, this.site);
      if (this.site.layout === 'files') emitFiles(batch, block, this.site, this.#sink);
      blocks.push({ height: block.height, files: totals.files - files, bytes: totals.bytes - bytes, spooled });
    }
    this.#sink.flush();
    return { blocks, kept: totals.kept - keptBefore };
  }

  close(): void {
    this.#list?.close();
    this.#spool?.close();
  }
}
