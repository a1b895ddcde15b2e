import { closeSync, openSync, writeFileSync } from 'node:fs';
import { codeOf, messageOf } from '../errors.ts';

/** Number of buffered characters at which the buffer is written to the file. */
const AT_ONCE = 64 * 1024;

/** File of lines with a write buffer. All methods throw system errors that name the file. */
export class LineFile {
  /** Handle of the open file. Undefined until the first flush. */
  #handle: number | undefined;
  #text = '';
  /** What was added before `#text`, and its size in bytes. */
  #chunks: Uint8Array[] = [];
  #size = 0;
  count = 0;
  /** Upper bound of the length of the longest line, in bytes. */
  longest = 0;

  /** Does not open the file yet. Replaces an existing file. */
  constructor(readonly file: string) {}

  /** Adds a line, which must not contain a line feed. */
  add(line: string): void {
    this.#text += `${line}\n`;
    this.count += 1;
    // A UTF-16 code unit takes at most 3 bytes in UTF-8.
    this.longest = Math.max(this.longest, 3 * line.length);
    if (this.#text.length >= AT_ONCE) this.flush();
  }

  /** Adds a line of a text, bytes without a line feed, which must not change until the next flush, and a text. */
  addBytes(text: string, bytes: Uint8Array, end: string): void {
    this.#chunks.push(Buffer.from(this.#text + text), bytes);
    this.#size += this.#text.length + bytes.length;
    this.#text = `${end}\n`;
    this.count += 1;
    this.longest = Math.max(this.longest, 3 * (text.length + end.length) + bytes.length);
    if (this.#size >= AT_ONCE) this.flush();
  }

  /** Writes the buffered lines to the file. Creates the file even if no line was added. */
  flush(): void {
    try {
      this.#handle ??= openSync(this.file, 'w');
      writeFileSync(this.#handle, Buffer.concat([...this.#chunks, Buffer.from(this.#text)]));
      [this.#chunks, this.#size, this.#text] = [[], 0, ''];
    } catch (error) {
      throw Object.assign(new Error(`${this.file}: ${messageOf(error)}`), { code: codeOf(error), syscall: 'write' });
    }
  }

  /** Closes the file. Lines that were not flushed are lost. */
  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }

  end(): void {
    try {
      this.flush();
    } finally {
      this.close();
    }
  }
}

/** Creates a file with the lines that `add` adds. Closes the file even if `add` fails. */
export async function writeLines(file: string, add: (lines: LineFile) => Promise<void> | void): Promise<LineFile> {
  const lines = new LineFile(file);
  try {
    await add(lines);
  } finally {
    lines.end();
  }
  return lines;
}
