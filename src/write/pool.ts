/**
 * Hands batches to writer threads, so that rendering and writing overlap, and holds rendering back when writing is behind.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type BuildError, codeOf, messageOf } from '../errors.ts';
import type { Site } from '../pages/lists.ts';
import type { Batch } from '../render/servedOrder.ts';
import { writeFailure } from './failure.ts';
import type { WriterData, WriterReply, WriterTarget, WrittenBlock } from './writer.ts';

interface Writer {
  readonly worker: Worker;
  /** The batch it works on; undefined when it is idle. */
  busy: Promise<void> | undefined;
}

/** Pages of blocks as they are on disk. */
export interface Written {
  readonly blocks: Map<number, WrittenBlock>;
  /** Files that were there already with the same bytes. */
  readonly kept: number;
}

export class WriterPool {
  readonly #writers: Writer[];
  readonly #blocks = new Map<number, WrittenBlock>();
  #kept = 0;
  /** Records of blocks whose pages are written. */
  records = 0;
  /** What ended a thread, if one ended by itself. */
  #failure: BuildError | undefined;

  /** A thread for each target, or one that only counts for a dry run. They start at once, while the input is still loading. */
  constructor(site: Site, targets: readonly (WriterTarget | undefined)[]) {
    this.#writers = targets.map((target) => ({
      worker: new Worker(new URL('./writerThread.cjs', import.meta.url), { workerData: { site, target } satisfies WriterData }),
      busy: undefined,
    }));
    for (const { worker } of this.#writers) {
      worker.on('error', (error) => {
        this.#failure ??= writeFailure({ message: `a writer thread ended: ${messageOf(error)}`, code: codeOf(error) });
      });
    }
  }

  /** Resolves when a writer has taken the batch; the batch is gone from this thread. Throws a BuildError when writing failed. */
  async submit(batch: Batch): Promise<void> {
    let writer = this.#writers.find((w) => w.busy === undefined);
    while (writer === undefined) {
      await Promise.race(this.#writers.map((w) => w.busy));
      writer = this.#writers.find((w) => w.busy === undefined);
    }
    writer.busy = this.#write(writer, batch);
    // The failure is seen by whoever waits for this writer next.
    writer.busy.catch(() => undefined);
  }

  async #write(writer: Writer, batch: Batch): Promise<void> {
    const { worker } = writer;
    if (this.#failure !== undefined) throw this.#failure;
    worker.postMessage(
      batch,
      [batch.bytes, batch.offsets, batch.operations, batch.txIds].map((array) => array.buffer as ArrayBuffer),
    );
    const [reply] = (await once(worker, 'message').catch((error: unknown) => {
      throw this.#failure ?? error;
    })) as [WriterReply];
    if (reply.kind === 'failed') throw writeFailure(reply);
    for (const block of reply.blocks) this.#blocks.set(block.height, block);
    this.#kept += reply.kept;
    for (const block of batch.blocks) this.records += block.records;
    writer.busy = undefined;
  }

  /** Waits for all writers and returns what they wrote. */
  async finish(): Promise<Written> {
    await Promise.all(this.#writers.map((w) => w.busy));
    return { blocks: this.#blocks, kept: this.#kept };
  }

  async close(): Promise<void> {
    await Promise.all(this.#writers.map(({ worker }) => worker.terminate()));
  }
}
