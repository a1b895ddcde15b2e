/**
 * Writes batches: the first few records in this thread, because a thread takes longer to start than they take to write, and all others in writer
 * threads, so that rendering and writing overlap. Holds rendering back when writing is behind.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type BuildError, codeOf, messageOf } from '../errors.ts';
import type { Site } from '../pages/lists.ts';
import { BATCH_RECORDS } from '../render/batches.ts';
import type { Batch } from '../render/servedOrder.ts';
import { BatchWriter, type WriterTarget, type WrittenBatch, type WrittenBlock } from './batchWriter.ts';
import { writeFailure } from './failure.ts';
import type { WriterData, WriterReply } from './writer.ts';

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
  readonly #site: Site;
  readonly #targets: readonly (WriterTarget | undefined)[];
  #own: BatchWriter | undefined;
  readonly #writers: Writer[] = [];
  readonly #blocks = new Map<number, WrittenBlock>();
  #kept = 0;
  #submitted = 0;
  /** Records of blocks whose pages are written. */
  records = 0;
  /** What ended a thread, if one ended by itself. */
  #failure: BuildError | undefined;

  /** Starts at most one thread for each target. A single target is written in this thread; `undefined` only counts, for a dry run. */
  constructor(site: Site, targets: readonly (WriterTarget | undefined)[]) {
    this.#site = site;
    this.#targets = targets;
  }

  /** Resolves when the batch is written, or a thread has taken it; the batch is gone from this thread. Throws a BuildError when writing failed. */
  async submit(batch: Batch): Promise<void> {
    for (const { records } of batch.blocks) this.#submitted += records;
    if (this.#targets.length === 1 || this.#submitted < BATCH_RECORDS) {
      this.#writeHere(batch);
      return;
    }
    const writer = await this.#idleWriter();
    writer.busy = this.#write(writer, batch);
    // The failure is seen by whoever waits for this writer next.
    writer.busy.catch(() => undefined);
  }

  #writeHere(batch: Batch): void {
    this.#own ??= new BatchWriter(this.#site, this.#targets[0]);
    try {
      this.#count(batch, this.#own.write(batch));
    } catch (error) {
      throw writeFailure({ message: messageOf(error), code: codeOf(error) });
    }
  }

  /** Starts a thread only when all others are busy. */
  async #idleWriter(): Promise<Writer> {
    for (;;) {
      const idle = this.#writers.find((w) => w.busy === undefined);
      if (idle !== undefined) return idle;
      if (this.#writers.length < this.#targets.length) return this.#start(this.#targets[this.#writers.length]);
      await Promise.race(this.#writers.map((w) => w.busy));
    }
  }

  #start(target: WriterTarget | undefined): Writer {
    const data: WriterData = { site: this.#site, target };
    const worker = new Worker(new URL('./writerThread.cjs', import.meta.url), { workerData: data });
    worker.on('error', (error) => {
      this.#failure ??= writeFailure({ message: `a writer thread ended: ${messageOf(error)}`, code: codeOf(error) });
    });
    const writer: Writer = { worker, busy: undefined };
    this.#writers.push(writer);
    return writer;
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
    this.#count(batch, reply);
    writer.busy = undefined;
  }

  #count(batch: Batch, { blocks, kept }: WrittenBatch): void {
    for (const block of blocks) this.#blocks.set(block.height, block);
    this.#kept += kept;
    for (const { records } of batch.blocks) this.records += records;
  }

  /** Waits for all writers and returns what they wrote. */
  async finish(): Promise<Written> {
    await Promise.all(this.#writers.map((w) => w.busy));
    return { blocks: this.#blocks, kept: this.#kept };
  }

  async close(): Promise<void> {
    this.#own?.close();
    await Promise.all(this.#writers.map(({ worker }) => worker.terminate()));
  }
}
