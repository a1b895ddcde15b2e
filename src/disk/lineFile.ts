import { closeSync, openSync, writeFileSync } from 'node:fs';

/** Characters that are collected before they are written. */
const AT_ONCE = 64 * 1024;

/** File of lines that is open for writing. Replaces any file at its path. */
export class LineFile {
  readonly #handle: number;
  #text = '';
  count = 0;
  /** Upper bound of the length of the longest line, in bytes. */
  longest = 0;

  constructor(readonly file: string) {
    this.#handle = openSync(file, 'w');
  }

  /** Adds a line, which must not contain a line feed. */
  add(line: string): void {
    this.#text += `${line}\n`;
    this.count += 1;
    // A UTF-16 code unit takes at most 3 bytes in UTF-8.
    this.longest = Math.max(this.longest, 3 * line.length);
    if (this.#text.length >= AT_ONCE) this.#flush();
  }

  #flush(): void {
    writeFileSync(this.#handle, Buffer.from(this.#text));
    this.#text = '';
  }

  /** Writes the last lines and closes the file. */
  close(): void {
    try {
      this.#flush();
    } finally {
      closeSync(this.#handle);
    }
  }
}

/** Creates a file with the lines that `add` adds. Closes the file even if `add` fails. */
export async function writeLines(file: string, add: (lines: LineFile) => Promise<void> | void): Promise<LineFile> {
  const lines = new LineFile(file);
  try {
    await add(lines);
  } finally {
    lines.close();
  }
  return lines;
}
