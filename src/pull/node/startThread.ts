/** Program of a thread that reads the outputs of a start (claimedOutputs.ts). */
import { workerData } from 'node:worker_threads';
import { sendItems } from '../../threads.ts';
import { type ClaimedLedger, readOutputs } from './claimedOutputs.ts';

sendItems(readOutputs(workerData as ClaimedLedger), ({ ledger, csv, outputs }) => [ledger.buffer, csv.buffer, outputs.buffer]);
