/** Unpacks .gz and .zst files: DuckDB does not notice a cut-off file, and only one of its threads could read a compressed stream. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { BuildError, codeOf, InputError, messageOf } from '../errors.ts';
import type { InputFile } from './discover.ts';
import { unpackZstd } from './zstd.ts';

/** Unpacks `file` to `target`. Throws an InputError when the file is damaged or cut off. */
export async function decompress(file: InputFile, compression: 'gzip' | 'zstd', target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  try {
    const to = createWriteStream(target);
    if (compression === 'zstd') await pipeline(unpackZstd(file.path), to);
    else await gunzip(file.path, to);
  } catch (error) {
    if (['ENOSPC', 'EACCES', 'EROFS', 'EDQUOT', 'EIO', 'EMFILE', 'ENFILE'].includes(codeOf(error) ?? ''))
      throw new BuildError(`${file.name} cannot be unpacked into the cache folder: ${messageOf(error)}`, [
        'Free some space there, or use another folder with --cache.',
      ]);
    throw new InputError(`${file.name} is not a complete ${compression} file: ${messageOf(error)}`, [
      'The file is damaged or cut off; fetch or write it again.',
    ]);
  }
}

/**
 * Unpacks all members of a gzip file. Node takes a zero byte after a member for padding, and ignores the rest of the file. As a damaged
 * byte could lose all later members, all ignored bytes must be zero.
 */
async function gunzip(path: string, to: Writable): Promise<void> {
  const unpack = createGunzip();
  await pipeline(createReadStream(path), unpack, to);
  for await (const chunk of createReadStream(path, { start: unpack.bytesWritten }) as AsyncIterable<Buffer>) {
    if (chunk.some((byte) => byte !== 0)) throw new Error(`it has data that is not gzip from byte ${unpack.bytesWritten} on`);
  }
}
