/**
 * How far the input is read: by the bytes of the plain files, which DuckDB scans once each, some of them at a time. What follows (records that are
 * checked against each other, sorted) has no measure that is known before.
 */
import type { Measure } from '../cli/progress.ts';

const MEGABYTE = 1e6;

export class ReadMeasure {
  #files = 0;
  #bytes = 0;
  #done = 0;
  #atWork = 0;

  /** So many files are to be looked at, and unpacked. */
  expect(files: number): void {
    this.#files += files;
  }

  /** One of them was: it has so many bytes. */
  found(bytes: number): void {
    this.#files -= 1;
    this.#bytes += bytes;
  }

  /** `work` is the scan of so many bytes of what was found. */
  async scan<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    this.#atWork = bytes;
    const result = await work();
    this.#atWork = 0;
    this.#done += bytes;
    return result;
  }

  /** Everything that was to be read has been; of Parquet, which is scanned in place, perhaps only a part. */
  finish(): void {
    this.#done = this.#bytes;
  }

  /** What to show: `share` of the scan at work is done, 0 to 1. */
  at(share: number): Measure | string {
    if (this.#files > 0) return `${this.#files.toLocaleString('en-US')} files to look at`;
    if (this.#bytes === 0) return 'finding files';
    // At least one, so that there is something to be done.
    const all = Math.max(1, megabytes(this.#bytes));
    if (this.#done === this.#bytes) return `${all.toLocaleString('en-US')} MB read, checking`;
    return { done: Math.min(megabytes(this.#done + this.#atWork * share), all), all, what: 'MB' };
  }
}

const megabytes = (bytes: number): number => Math.round(bytes / MEGABYTE);
