/** Program of a thread that computes a digest of the ledger (ledgerDigest.ts). */
import { workerData } from 'node:worker_threads';
import { sendItems } from '../../threads.ts';
import { type DigestTask, digestIn } from './readLedger.ts';

sendItems(
  (async function* () {
    yield await digestIn(workerData as DigestTask);
  })(),
);
