/** Reads a text file line by line in bounded memory. */
import { createReadStream } from 'node:fs';

/**
 * Maximum length of a line in bytes. Longer lines are cut, because DuckDB rejects such long records (LARGEST_OBJECT_BYTES in readJson.ts).
 */
export const LONGEST_LINE = 128 * 1024 * 1024;

const LINE_FEED = 10;

/** Yields the bytes of each line without its line feed. Cuts a line after LONGEST_LINE + 1 bytes. */
export async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  const add = (part: Buffer) => {
    const kept = part.subarray(0, LONGEST_LINE + 1 - length);
    parts.push(kept);
    length += kept.length;
  };
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      yield Buffer.concat(parts);
      parts = [];
      length = 0;
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield Buffer.concat(parts);
}

export const isBlank = (line: Buffer): boolean => line.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
