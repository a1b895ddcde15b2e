/** Entry point of the thread of blockReader.ts: receives the bytes of blocks, checks them and computes transaction ids. */
import { parentPort } from 'node:worker_threads';
import { BlockError, readBlock } from '../../runes/block.ts';
import { hash256 } from './hash256.ts';

/** Reply to each block. The bytes are those that were received. */
export type HashReply =
  | { readonly kind: 'done'; readonly bytes: Uint8Array; readonly txids: Uint8Array }
  | { readonly kind: 'damaged'; readonly message: string };

parentPort?.on('message', (bytes: Uint8Array) => {
  const reply = hashed(bytes);
  parentPort?.postMessage(reply, reply.kind === 'done' ? [reply.bytes.buffer as ArrayBuffer, reply.txids.buffer as ArrayBuffer] : []);
});

function hashed(bytes: Uint8Array): HashReply {
  try {
    return { kind: 'done', bytes, txids: readBlock(bytes, hash256).txids };
  } catch (error) {
    if (!(error instanceof BlockError)) throw error;
    return { kind: 'damaged', message: error.message };
  }
}
