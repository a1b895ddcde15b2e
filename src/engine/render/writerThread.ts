/** Entry point of a writer thread: receives rendered batches from writerPool.ts and writes their files. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Site } from '../../pages/mirrorOptions.ts';
import { BatchWriter, type WriterTarget } from './batchWriter.ts';
import type { Batch } from './servedOrder.ts';

export interface WriterData {
  readonly site: Site;
  readonly target: WriterTarget;
}

const { site, target } = workerData as WriterData;
const writer = new BatchWriter(site, target);

parentPort?.on('message', (batch: Batch) => {
  parentPort?.postMessage(writer.write(batch), [batch.bytes.buffer]);
});
