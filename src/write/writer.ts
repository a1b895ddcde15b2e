/**
 * The thread that writes: it is handed rendered batches, and makes and writes their files. See pool.ts for the other side.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf } from '../errors.ts';
import type { Site } from '../pages/lists.ts';
import type { Batch } from '../render/servedOrder.ts';
import { emitFiles } from './pageFiles.ts';
import { PathList } from './pathList.ts';
import { CountingSink, DiskSink } from './sinks.ts';

export interface WriterData {
  readonly site: Site;
  /** Undefined for a dry run. */
  readonly target: WriterTarget | undefined;
}

export interface WriterTarget {
  /** The output folder. */
  readonly root: string;
  /** The file that the paths of new and changed files are written to. */
  readonly added: string;
  /** Whether files that were there already with the same bytes are listed too. */
  readonly listKept: boolean;
}

/** What a block's pages came to, its transactions' included. */
export interface WrittenBlock {
  readonly height: number;
  readonly files: number;
  readonly bytes: number;
}

export type WriterReply =
  | { readonly kind: 'done'; readonly blocks: readonly WrittenBlock[]; readonly kept: number }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined };

const { site, target } = workerData as WriterData;
const sink = target === undefined ? new CountingSink() : new DiskSink(target.root, new PathList(target.added), target.listKept);

parentPort?.on('message', (batch: Batch) => {
  parentPort?.postMessage(write(batch));
});

function write(batch: Batch): WriterReply {
  try {
    const blocks: WrittenBlock[] = [];
    const keptBefore = sink.totals.kept;
    for (const block of batch.blocks) {
      const { files, bytes } = sink.totals;
      emitFiles(batch, block, site, sink);
      blocks.push({ height: block.height, files: sink.totals.files - files, bytes: sink.totals.bytes - bytes });
    }
    sink.flush();
    return { kind: 'done', blocks, kept: sink.totals.kept - keptBefore };
  } catch (error) {
    return { kind: 'failed', message: messageOf(error), code: codeOf(error) };
  }
}
