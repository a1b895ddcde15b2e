/**
 * Files of layout `archive`, which the server reads in parts. Keeps files open, because opening a file takes longer
 * than reading a part of it. This is safe, because these files never change.
 */
import { closeSync, openSync, read, readSync } from 'node:fs';
import { promisify } from 'node:util';
import { exceeds, type ServerLimits } from '../../limits.ts';

const readInThread = promisify(read);

interface Opened {
  readonly handle: number;
  /** Number of unfinished reads in other threads. */
  reads: number;
  isClosed: boolean;
}

export class OpenFiles {
  /** Open files by path, least recently used first. */
  readonly #opened = new Map<string, Opened>();

  constructor(private readonly limits: ServerLimits) {}

  has(path: string): boolean {
    return this.#opened.has(path);
  }

  /** Opens a file, and closes the least recently used files above the limit. Throws system errors. */
  open(path: string, real: string): void {
    this.#opened.set(path, { handle: openSync(real, 'r'), reads: 0, isClosed: false });
    for (const [oldest, file] of this.#opened) {
      if (!exceeds(this.limits, 'openFiles', this.#opened.size)) return;
      this.#opened.delete(oldest);
      end(file);
    }
  }

  /** Reads a part of an open file, synchronously. Undefined if the file is shorter. */
  readAtOnce(path: string, offset: number, length: number): Buffer | undefined {
    const file = this.#use(path);
    const part = Buffer.allocUnsafeSlow(length);
    return readSync(file.handle, part, 0, length, offset) === length ? part : undefined;
  }

  /** Reads like `readAtOnce`, but in another thread, for slow disks. */
  async readInThread(path: string, offset: number, length: number): Promise<Buffer | undefined> {
    const file = this.#use(path);
    const part = Buffer.allocUnsafeSlow(length);
    file.reads += 1;
    try {
      const { bytesRead } = await readInThread(file.handle, part, 0, length, offset);
      return bytesRead === length ? part : undefined;
    } finally {
      file.reads -= 1;
      if (file.isClosed) end(file);
    }
  }

  #use(path: string): Opened {
    const file = this.#opened.get(path);
    if (file === undefined) throw new Error(`${path} is not open`);
    this.#opened.delete(path);
    this.#opened.set(path, file);
    return file;
  }

  close(): void {
    for (const file of this.#opened.values()) end(file);
    this.#opened.clear();
  }
}

/** Closes a file, or marks it to be closed after its last running read. */
function end(file: Opened): void {
  file.isClosed = true;
  if (file.reads === 0) closeSync(file.handle);
}
