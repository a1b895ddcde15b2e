/** Creates `activity/index.json`, the list of Parquet files. Each range of 100 heights with a block has one file. */
import { createHash } from 'node:crypto';
import { createReadStream, lstatSync } from 'node:fs';
import type { BulkFile } from '../contract/parquetSchemas.ts';
import { isAbsence } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import { ACTIVITY_FOLDER, firstOfRange, rangePath } from '../pages/filePaths.ts';

export interface FileStamp {
  readonly bytes: number;
  /** SHA-256 of the content, 64 hex digits. */
  readonly sha256: string;
}

interface BlockSize {
  readonly height: number;
  readonly records: number;
}

/** Groups blocks (heights ascending) by the first height of their range. */
export const byRange = <Block extends BlockSize>(blocks: readonly Block[]): Map<number, Block[]> =>
  groupBy(blocks, ({ height }) => firstOfRange(height));

export const recordsOf = (blocks: readonly BlockSize[]): number => blocks.reduce((sum, { records }) => sum + records, 0);

/**
 * Returns the content of `activity/index.json`. The heights of `blocks` must ascend. `stamps` has the stamp of each
 * range's file, by the first height of the range. Throws if a stamp is missing.
 */
export function rangesFile(blocks: readonly BlockSize[], stamps: ReadonlyMap<number, FileStamp>): Buffer {
  const lines = [...byRange(blocks)].map(([first, inRange]) => {
    const stamp = stamps.get(first);
    if (stamp === undefined) throw new Error(`${rangePath(first)} was not written`);
    const range: BulkFile = {
      file: rangePath(first).slice(ACTIVITY_FOLDER.length + 1),
      first: inRange[0]?.height ?? first,
      last: inRange.at(-1)?.height ?? first,
      blocks: inRange.length,
      records: recordsOf(inRange),
      bytes: stamp.bytes,
      sha256: stamp.sha256,
    };
    return JSON.stringify(range);
  });
  return Buffer.from(`{"ranges":[\n${lines.join(',\n')}\n]}\n`);
}

/** Reads a file and computes its stamp. Returns undefined if the path is not an existing regular file. */
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
    if (isAbsence(error)) return undefined;
    throw error;
  }
}
