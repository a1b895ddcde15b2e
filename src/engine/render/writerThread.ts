/** Entry point of a writer thread: receives rendered batches from writerPool.ts and writes their files. */
import { parentPort, workerData } from 'node:worker_threads';
import { BatchWriter, type WriterTarget } from './batchWriter.ts';
import type { Batch } from './servedOrder.ts';

const writer = new BatchWriter(workerData as WriterTarget);

parentPort?.on('message', (batch: Batch) => {
  parentPort?.postMessage(writer.write(batch), [batch.bytes.buffer]);
});
