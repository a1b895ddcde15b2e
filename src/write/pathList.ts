/**
 * A list of paths on disk, a path a line: what a build added or removed.
 */
import { closeSync, constants, fsyncSync, openSync, writeSync } from 'node:fs';
import { codeOf, messageOf } from '../errors.ts';

/** A link or a pipe that someone put there is an error. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A file that lists paths, written in pieces. */
export class PathList {
  readonly #file: string;
  /** Opened with the first path. */
  #handle: number | undefined;
  readonly #buffer = Buffer.allocUnsafeSlow(1 << 16);
  #length = 0;

  /** Appends to `file`. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Adds a path of this program's: ASCII, of some hundred characters at most. */
  add(path: string): void {
    if (this.#length + path.length >= this.#buffer.length) this.flush();
    this.#length += this.#buffer.write(`${path}\n`, this.#length, 'latin1');
  }

  /** Throws system errors that name the file. */
  flush(): void {
    this.#write(() => undefined);
  }

  /** Flushes, and waits until the list is on the disk. Throws as `flush` does. */
  sync(): void {
    this.#write(fsyncSync);
  }

  #write(end: (handle: number) => void): void {
    try {
      this.#handle ??= openSync(this.#file, APPEND);
      let written = 0;
      while (written < this.#length) written += writeSync(this.#handle, this.#buffer, written, this.#length - written);
      this.#length = 0;
      end(this.#handle);
    } catch (error) {
      throw Object.assign(new Error(`${this.#file}: ${messageOf(error)}`), { code: codeOf(error) });
    }
  }

  /** Closes the file, without what was not flushed. */
  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }
}
