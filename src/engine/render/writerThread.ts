/** Entry point of a writer thread: receives rendered batches from writerPool.ts and writes their files. */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf } from '../../errors.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { BatchWriter, type WriterTarget, type WrittenBatch } from './batchWriter.ts';
import type { Batch } from './servedOrder.ts';

export interface WriterData {
  readonly site: Site;
  readonly target: WriterTarget;
}

export type WriterReply =
  | ({ readonly kind: 'done'; readonly spare: Uint8Array<ArrayBuffer> } & WrittenBatch)
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined };

const { site, target } = workerData as WriterData;
const writer = new BatchWriter(site, target);

parentPort?.on('message', (batch: Batch) => {
  parentPort?.postMessage(write(batch), [batch.bytes.buffer]);
});

function write(batch: Batch): WriterReply {
  try {
    return { kind: 'done', spare: batch.bytes, ...writer.write(batch) };
  } catch (error) {
    return { kind: 'failed', message: messageOf(error), code: codeOf(error) };
  }
}
