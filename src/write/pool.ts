/**
 * Hands batches to writer threads, so that rendering and writing overlap, and holds rendering back when writing is behind.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { BuildError } from '../errors.ts';
import type { Site } from '../pages/lists.ts';
import type { Batch } from '../render/batches.ts';
import type { SinkTotals } from './sinks.ts';
import type { WriterData, WriterReply } from './writer.ts';

interface Writer {
  readonly worker: Worker;
  totals: SinkTotals;
  /** The batch it works on; undefined when it is idle. */
  busy: Promise<void> | undefined;
}

export class WriterPool {
  readonly #writers: Writer[];

  /** `root` is the output folder, undefined for a dry run. The threads start at once, while the input is still loading. */
  constructor(threads: number, site: Site, root: string | undefined) {
    const workerData: WriterData = { site, root };
    this.#writers = Array.from({ length: threads }, () => ({
      worker: new Worker(new URL('./writerThread.mjs', import.meta.url), { workerData }),
      totals: { files: 0, bytes: 0, kept: 0 },
      busy: undefined,
    }));
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
    worker.postMessage(batch, [batch.bytes.buffer as ArrayBuffer, batch.offsets.buffer as ArrayBuffer]);
    const [reply] = (await once(worker, 'message')) as [WriterReply];
    if (reply.kind === 'failed') throw writeFailure(reply);
    writer.totals = reply.totals;
    writer.busy = undefined;
  }

  /** Waits for all writers and returns what they wrote. */
  async finish(): Promise<SinkTotals> {
    await Promise.all(this.#writers.map((w) => w.busy));
    const totals: SinkTotals = { files: 0, bytes: 0, kept: 0 };
    for (const { totals: own } of this.#writers) {
      totals.files += own.files;
      totals.bytes += own.bytes;
      totals.kept += own.kept;
    }
    return totals;
  }

  async close(): Promise<void> {
    await Promise.all(this.#writers.map(({ worker }) => worker.terminate()));
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full, or out of inodes: free some, or build into another folder with --out. Then build again.',
  EDQUOT: 'The disk quota is used up: free some, or build into another folder with --out. Then build again.',
  EACCES: 'This user may not write there: change the rights, or build into another folder with --out.',
  EPERM: 'This user may not write there: change the rights, or build into another folder with --out.',
  EROFS: 'The file system is read-only: build into another folder with --out.',
  EMFILE: 'Too many files are open: raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
};

/** A failed file operation as an error for people. What was written before it stays; the next build goes on from there. */
export function writeFailure(error: { readonly message: string; readonly code?: string | undefined }): BuildError {
  const advice = ADVICE[error.code ?? ''];
  return new BuildError(`writing the output failed: ${error.message}`, advice === undefined ? [] : [advice]);
}
