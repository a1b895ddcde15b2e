/**
 * Which Parquet files there are: a file for each range of a hundred heights that holds a block, and `activity/index.json`, which lists them.
 */
import { createHash } from 'node:crypto';
import { createReadStream, lstatSync } from 'node:fs';
import type { BulkFile } from '../contract/bulk.ts';
import { codeOf } from '../errors.ts';
import { ACTIVITY_FOLDER, firstOfRange, rangePath } from '../pages/paths.ts';

/** What tells a file from every other. */
export interface FileStamp {
  readonly bytes: number;
  /** Of the content, 64 hex digits. */
  readonly sha256: string;
}

interface HeldBlock {
  readonly height: number;
  readonly records: number;
}

/** Blocks (heights ascending) by the first height of their range. */
export function byRange<Block extends HeldBlock>(blocks: readonly Block[]): Map<number, Block[]> {
  const ranges = new Map<number, Block[]>();
  for (const block of blocks) {
    const first = firstOfRange(block.height);
    const range = ranges.get(first);
    if (range === undefined) ranges.set(first, [block]);
    else range.push(block);
  }
  return ranges;
}

export const recordsOf = (blocks: readonly HeldBlock[]): number => blocks.reduce((sum, { records }) => sum + records, 0);

/** `activity/index.json` of these blocks (heights ascending). Throws when the file of a range is not among `stamps`. */
export function rangesFile(blocks: readonly HeldBlock[], stamps: ReadonlyMap<number, FileStamp>): Buffer {
  const lines = [...byRange(blocks)].map(([first, held]) => {
    const stamp = stamps.get(first);
    if (stamp === undefined) throw new Error(`${rangePath(first)} was not made`);
    const range: BulkFile = {
      file: rangePath(first).slice(ACTIVITY_FOLDER.length + 1),
      first: held[0]?.height ?? first,
      last: held.at(-1)?.height ?? first,
      blocks: held.length,
      records: recordsOf(held),
      bytes: stamp.bytes,
      sha256: stamp.sha256,
    };
    return JSON.stringify(range);
  });
  return Buffer.from(`{"ranges":[\n${lines.join(',\n')}\n]}\n`);
}

/** Reads a file once; undefined when there is none, or no file. */
export async function stampOf(path: string): Promise<FileStamp | undefined> {
  try {
    if (!lstatSync(path).isFile()) return undefined;
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    return { bytes, sha256: hash.digest('hex') };
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
