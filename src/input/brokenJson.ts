/**
 * Says where a JSON file is broken. DuckDB notices it but counts lines from where it gave up, which may be one too far.
 */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { messageOf } from '../errors.ts';
import { isBlank, LONGEST_LINE, linesOf } from './lines.ts';

/** Files up to this size are parsed whole to find the place. */
const WHOLE_FILE_BYTES = 64 * 1024 * 1024;

/** The place and the reason, e.g. `line 3: Unterminated string ...`; undefined when every line (or the file) is good JSON after all. */
export async function whereBroken(path: string, bytes: number, byLine: boolean): Promise<string | undefined> {
  if (!byLine) return bytes > WHOLE_FILE_BYTES ? undefined : reason(await readFile(path));
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    if (bytes.length > LONGEST_LINE) return `line ${line} is longer than ${LONGEST_LINE / 2 ** 20} MiB`;
    const broken = isBlank(bytes) ? undefined : reason(bytes);
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
