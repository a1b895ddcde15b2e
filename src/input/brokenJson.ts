/**
 * Says where a JSON file is broken. DuckDB notices it but counts lines from where it gave up, which may be one too far.
 */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { messageOf } from '../errors.ts';

/** Files up to this size are parsed whole to find the place. */
const WHOLE_FILE_BYTES = 64 * 1024 * 1024;

/** The place and the reason, e.g. `line 3: Unterminated string ...`; undefined when every line (or the file) is good JSON after all. */
export async function whereBroken(path: string, bytes: number, byLine: boolean): Promise<string | undefined> {
  if (!byLine) return bytes > WHOLE_FILE_BYTES ? undefined : reason(await readFile(path));
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(path, 'latin1'), crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    // Read as Latin-1, a character is a byte, so what is no UTF-8 is still there to be seen.
    const broken = text.trim() === '' ? undefined : reason(Buffer.from(text, 'latin1'));
    if (broken !== undefined) return `line ${line}: ${broken}`;
  }
  return undefined;
}

function reason(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return 'not UTF-8';
  try {
    // JSON.stringify writes half a surrogate pair, which no text can hold, as an escape.
    const text = JSON.stringify(JSON.parse(bytes.toString('utf8')));
    return /(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text) ? 'half of a surrogate pair (\\ud800 to \\udfff)' : undefined;
  } catch (error) {
    return messageOf(error);
  }
}
