/**
 * The thread that writes: it is handed rendered batches, and makes and writes their files. See pool.ts for the other side.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf } from '../errors.ts';
import type { Site } from '../pages/lists.ts';
import type { Batch } from '../render/batches.ts';
import { emitFiles } from '../render/files.ts';
import { CountingSink, DiskSink, type SinkTotals } from './sinks.ts';

export interface WriterData {
  readonly site: Site;
  /** The output folder; undefined for a dry run. */
  readonly root: string | undefined;
}

export type WriterReply =
  | { readonly kind: 'done'; readonly totals: SinkTotals }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined };

const { site, root } = workerData as WriterData;
const sink = root === undefined ? new CountingSink() : new DiskSink(root);

parentPort?.on('message', (batch: Batch) => {
  let reply: WriterReply;
  try {
    emitFiles(batch, site, sink);
    reply = { kind: 'done', totals: { ...sink.totals } };
  } catch (error) {
    reply = { kind: 'failed', message: messageOf(error), code: codeOf(error) };
  }
  parentPort?.postMessage(reply);
});
