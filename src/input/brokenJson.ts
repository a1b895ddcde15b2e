/**
 * Says where a JSON file is broken. DuckDB notices it but counts lines from where it gave up, which may be one too far.
 */
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { messageOf } from '../errors.ts';

/** Files up to this size are parsed whole to find the place. */
const WHOLE_FILE_BYTES = 64 * 1024 * 1024;

/** The place and the reason, e.g. `line 3: Unterminated string ...`; undefined when every line (or the file) is good JSON after all. */
export async function whereBroken(path: string, bytes: number, byLine: boolean): Promise<string | undefined> {
  if (!byLine) return bytes > WHOLE_FILE_BYTES ? undefined : reason(await readFile(path, 'utf8'));
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    const broken = text.trim() === '' ? undefined : reason(text);
    if (broken !== undefined) return `line ${line}: ${broken}`;
  }
  return undefined;
}

function reason(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
