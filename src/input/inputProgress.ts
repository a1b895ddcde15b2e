/** Progress of reading the input, in bytes of the uncompressed files. The time of the checks that follow is not known in advance. */
import type { Measure } from '../cli/progress.ts';

export class ReadProgress {
  #files = 0;
  #bytes = 0;
  #done = 0;
  #scanning = 0;

  /** Adds to the number of files that are still to be recognised and, if compressed, unpacked. */
  expect(files: number): void {
    this.#files += files;
  }

  /** Counts one expected file as recognised. `bytes` is the number of its bytes that will be scanned. */
  found(bytes: number): void {
    this.#files -= 1;
    this.#bytes += bytes;
  }

  /** Runs `work`, which scans `bytes` bytes of the input. */
  async scan<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    this.#scanning = bytes;
    const result = await work();
    this.#scanning = 0;
    this.#done += bytes;
    return result;
  }

  /** Marks all bytes as read, because a Parquet scan may read only a part of its files. */
  finish(): void {
    this.#done = this.#bytes;
  }

  /** Returns the progress to show. `share` is the finished part of the current scan, 0 to 1. */
  at(share: number): Measure | string {
    if (this.#files > 0) return `${this.#files.toLocaleString('en-US')} files to open`;
    if (this.#bytes === 0) return 'finding files';
    // At least 1, so that the total is never 0.
    const all = Math.max(1, megabytes(this.#bytes));
    if (this.#done === this.#bytes) return `${all.toLocaleString('en-US')} MB read, checking`;
    return { done: Math.min(megabytes(this.#done + this.#scanning * share), all), all, what: 'MB' };
  }
}

const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
