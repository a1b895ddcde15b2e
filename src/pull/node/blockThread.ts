/** Program of a thread that parses blocks (blockParser.ts). */
import { parentPort } from 'node:worker_threads';
import { BlockError, readParts } from '../../runes/parseBlock.ts';
import type { ParsedBlock } from './blockParser.ts';
import { hash256 } from './hash256.ts';

parentPort?.on('message', (bytes: Uint8Array) => {
  try {
    const block = readParts(bytes, hash256);
    const arrays = [bytes, block.txids, block.places, block.inputs, block.scripts, block.scriptLengths];
    const moved = arrays.map(({ buffer }) => buffer as ArrayBuffer);
    parentPort?.postMessage({ block } satisfies ParsedBlock, moved);
  } catch (error) {
    if (!(error instanceof BlockError)) throw error;
    parentPort?.postMessage({ damage: error.message } satisfies ParsedBlock);
  }
});
