/** Writes the files of rendered batches, in a writer thread (writerThread.ts) or, for small builds, in the main thread. */
import { codeOf, messageOf } from '../../errors.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { BlockSpool, type SpooledBlock } from './blockSpool.ts';
import { DiskSink } from './diskSink.ts';
import { emitFiles, type FileTotals } from './pageFiles.ts';
import type { Batch } from './servedOrder.ts';

export interface WriterTarget {
  readonly site: Site;
  /** Output folder. Undefined in a dry run, which only counts files. */
  readonly root: string | undefined;
  /** Path of a new file for the compressed pages of an archive. Undefined for a build without pages in an archive. */
  readonly spool: string | undefined;
}

/** Result of writing the pages of one block, including the pages of its transactions. In layout `archive`, there are 0 files. */
export interface WrittenBlock extends FileTotals {
  readonly height: number;
  /** Position of the pages in the spool (blockSpool.ts). Undefined for a build without pages in an archive. */
  readonly spooled: SpooledBlock | undefined;
}

export type WriterReply =
  | {
      readonly kind: 'done';
      readonly blocks: readonly WrittenBlock[];
      /** Number of files that already had the same bytes. */
      readonly kept: number;
      /** Buffer of the batch, which a new batch may use. */
      readonly spare: Batch['bytes'];
    }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined };

/** Writes one batch after another, and counts the written files of each block. */
export class BatchWriter {
  readonly #site: Site;
  readonly #sink: DiskSink | undefined;
  readonly #spool: BlockSpool | undefined;

  constructor({ site, root, spool }: WriterTarget) {
    this.#site = site;
    this.#sink = root === undefined ? undefined : new DiskSink(root);
    this.#spool = spool === undefined ? undefined : new BlockSpool(spool);
  }

  write(batch: Batch): WriterReply {
    const keptBefore = this.#sink?.kept ?? 0;
    try {
      const blocks = batch.blocks.map((block) => {
        const spooled = this.#spool?.add(batch, block, this.#site);
        const totals = this.#site.layout === 'files' ? emitFiles(batch, block, this.#site, this.#sink) : { files: 0, bytes: 0 };
        return { height: block.height, ...totals, spooled };
      });
      return { kind: 'done', blocks, kept: (this.#sink?.kept ?? 0) - keptBefore, spare: batch.bytes };
    } catch (error) {
      return { kind: 'failed', message: messageOf(error), code: codeOf(error) };
    }
  }

  close(): void {
    this.#spool?.close();
  }
}
