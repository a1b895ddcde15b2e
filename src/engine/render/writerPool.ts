/**
 * Writes batches in writer threads, so that rendering and writing overlap. Rendering waits while all threads are busy. The main thread
 * writes the first records of a build, because starting a thread would take longer than writing them.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { writeFailure } from '../../disk/fileErrors.ts';
import { type BuildError, codeOf, messageOf } from '../../errors.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';
import { program } from '../../program.ts';
import { BatchWriter, type WriterReply, type WriterTarget, type WrittenBlock } from './batchWriter.ts';
import type { Batch, SpareBuffers } from './servedOrder.ts';

interface Writer {
  readonly worker: Worker;
  /** Settles when the current batch is written. Undefined while the thread is idle. */
  busy: Promise<void> | undefined;
}

/** Memory of a thread for new objects, in MB. Nearly all bytes of batches and pages are outside of it. */
const YOUNG_MB = 8;

export class WriterPool {
  #own: BatchWriter | undefined;
  readonly #writers: Writer[] = [];
  readonly #blocks = new Map<number, WrittenBlock>();
  #kept = 0;
  #submitted = 0;
  records = 0;
  readonly spare: SpareBuffers = [];
  /** Set if a thread ended unexpectedly. */
  #failure: BuildError | undefined;

  /** Starts threads on demand, at most one per target. With one target, writes everything in the main thread. */
  constructor(
    private readonly targets: readonly [WriterTarget, ...WriterTarget[]],
    private readonly limits: Pick<WorkLimits, 'batchRecords'>,
  ) {}

  /**
   * Writes a batch, or passes it to a thread. The thread takes over the batch's buffers, so the caller must not use them again. Rejects
   * with a BuildError if writing this batch or an earlier one failed.
   */
  async submit(batch: Batch): Promise<void> {
    for (const { records } of batch.blocks) this.#submitted += records;
    if (this.targets.length === 1 || !exceeds(this.limits, 'batchRecords', this.#submitted)) {
      const [target] = this.targets;
      // The first thread gets the same target. Two writers cannot share a spool (blockSpool.ts), so the main thread has a spool of its own.
      this.#own ??= new BatchWriter({ ...target, spool: target.spool && `${target.spool}-first` });
      this.#take(batch, this.#own.write(batch));
      return;
    }
    const writer = await this.#idleWriter();
    writer.busy = this.#write(writer, batch);
    // The next submit() or finish() throws this error. Without a handler until then, Node would end the process.
    writer.busy.catch(() => undefined);
  }

  /** Returns an idle thread. If all are busy, starts another thread, or waits if every target has a thread. */
  async #idleWriter(): Promise<Writer> {
    for (;;) {
      const idle = this.#writers.find((w) => w.busy === undefined);
      if (idle !== undefined) return idle;
      const target = this.targets[this.#writers.length];
      if (target !== undefined) return this.#start(target);
      await Promise.race(this.#writers.map((w) => w.busy));
    }
  }

  #start(target: WriterTarget): Writer {
    const { script, argv } = program.threads.writer;
    const worker = new Worker(script, { argv: [...argv], workerData: target, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
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
    this.#take(batch, reply);
    writer.busy = undefined;
  }

  /** Takes the result of writing a batch. Throws a BuildError if writing failed. */
  #take(batch: Batch, reply: WriterReply): void {
    if (reply.kind === 'failed') throw writeFailure(reply);
    this.spare.push(reply.spare);
    for (const block of reply.blocks) this.#blocks.set(block.height, block);
    this.#kept += reply.kept;
    for (const { records } of batch.blocks) this.records += records;
  }

  /**
   * Waits until all batches are written, and ends the threads, to free their memory. Returns the blocks by height, and the number of files
   * that already had the same bytes. Rejects with a BuildError if a batch failed.
   */
  async finish(): Promise<{ readonly blocks: ReadonlyMap<number, WrittenBlock>; readonly kept: number }> {
    await Promise.all(this.#writers.map((w) => w.busy));
    await this.close();
    return { blocks: this.#blocks, kept: this.#kept };
  }

  /** Closes the files of the main thread, and ends all writer threads. */
  async close(): Promise<void> {
    this.#own?.close();
    this.#own = undefined;
    this.spare.length = 0;
    await Promise.all(this.#writers.splice(0).map(({ worker }) => worker.terminate()));
  }
}
