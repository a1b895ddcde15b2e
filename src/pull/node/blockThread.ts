/** Program of a thread that parses blocks (blockParser.ts). */
import { parentPort } from 'node:worker_threads';
import { BlockError, readParts } from '../../runes/parseBlock.ts';
import type { ParsedBlock } from './blockParser.ts';
import { hash256 } from './hash256.ts';

parentPort?.on('message', (bytes: Uint8Array) => {
  const answer = (parsed: ParsedBlock, arrays: readonly ArrayBufferView[]) =>
    parentPort?.postMessage(
      parsed,
      arrays.map(({ buffer }) => buffer as ArrayBuffer),
    );
  try {
    const block = readParts(bytes, hash256);
    answer({ block }, [bytes, block.txids, block.places, block.inputs, block.scripts, block.scriptLengths]);
  } catch (error) {
    if (!(error instanceof BlockError)) throw error;
    answer({ damage: error.message }, []);
  }
});
