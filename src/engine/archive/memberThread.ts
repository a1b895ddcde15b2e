/** Program of a thread that compresses members of documents (memberCompressor.ts). */
import { parentPort } from 'node:worker_threads';
import { gzipMembers, type Joined } from './memberCompressor.ts';

parentPort?.on('message', (members: Joined) => parentPort?.postMessage(gzipMembers(members)));
