/** Reads chains of raw blocks from files. A block's file is read only when a caller uses the block's bytes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashText } from '../../src/runes/bytes.ts';
import { HEADER_BYTES } from '../../src/runes/parseBlock.ts';
import type { FakeBlock } from './fakeNode.ts';
import { hash256 } from './memoryLedger.ts';

/** Lists the blocks of a folder with files named `HEIGHT.bin`. */
export function blocksIn(folder: string): FakeBlock[] {
  return readdirSync(folder)
    .filter((name) => /^[0-9]+\.bin$/.test(name))
    .map((name) => ({ height: Number.parseInt(name, 10), path: join(folder, name) }))
    .sort((a, b) => a.height - b.height)
    .map(({ height, path }) => ({
      hash: hashText(hash256(readFileSync(path).subarray(0, 80))),
      height,
      get bytes() {
        return readFileSync(path);
      },
    }));
}

/** Returns a chain with the same transactions, but with other block hashes from the height `fork` on. */
export function forkedAt(blocks: readonly FakeBlock[], fork: number): FakeBlock[] {
  let previous: string | undefined;
  return blocks.map((block) => {
    if (block.height < fork) {
      previous = block.hash;
      return block;
    }
    const before = Buffer.from(previous ?? '00'.repeat(32), 'hex').reverse();
    const header = Buffer.from(block.bytes.subarray(0, HEADER_BYTES));
    header.set(before, 4);
    header.writeUInt32LE(header.readUInt32LE(76) + 1, 76);
    previous = hashText(hash256(header));
    return {
      hash: previous,
      height: block.height,
      get bytes() {
        const bytes = Buffer.from(block.bytes);
        bytes.set(header);
        return bytes;
      },
    };
  });
}
