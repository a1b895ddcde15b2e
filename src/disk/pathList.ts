/** Writes lists of the paths that a build added or removed, one path per line. */
import { closeSync, constants, fsyncSync, openSync, writeFileSync } from 'node:fs';
import { codeOf, messageOf } from '../errors.ts';

/**
 * Flags that open a file for appending. With them, opening a link or a pipe fails, instead of following the link or
 * waiting for the pipe.
 */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** List of paths in a file, with a write buffer. */
export class PathList {
  /** Handle of the open file. Undefined until the first flush. */
  #handle: number | undefined;
  readonly #buffer = Buffer.allocUnsafeSlow(1 << 16);
  #length = 0;

  /** Opens nothing yet. If `file` exists, its lines stay. */
  constructor(private readonly file: string) {}

  /** Adds a path of the output. Such paths are ASCII, one byte per character, and much shorter than the buffer. */
  add(path: string): void {
    if (this.#length + path.length >= this.#buffer.length) this.flush();
    this.#length += this.#buffer.write(`${path}\n`, this.#length, 'latin1');
  }

  /** Writes the buffered paths. Creates the file even if there are none. Throws system errors that name the file. */
  flush(): void {
    this.#write(() => undefined);
  }

  /** Flushes, then waits until the list is on disk. Throws like `flush`. */
  sync(): void {
    this.#write(fsyncSync);
  }

  #write(end: (handle: number) => void): void {
    try {
      this.#handle ??= openSync(this.file, APPEND);
      writeFileSync(this.#handle, this.#buffer.subarray(0, this.#length));
      this.#length = 0;
      end(this.#handle);
    } catch (error) {
      throw Object.assign(new Error(`${this.file}: ${messageOf(error)}`), { code: codeOf(error) });
    }
  }

  /** Closes the file. Paths that were not flushed are lost. */
  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }
}
