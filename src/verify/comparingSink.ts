/** A file sink that does not write files: it checks that each file in the output has the expected content. */
import { attempt } from '../attempt.ts';
import { NotAFileError, readRegularFile } from '../disk/regularFile.ts';
import { isSameFile } from '../disk/replaceFile.ts';
import { type FileSink, PageBuffer } from '../engine/render/pageFiles.ts';
import { isAbsence } from '../errors.ts';
import type { Findings } from './findings.ts';

export class ComparingSink implements FileSink {
  /** Number of files that were found. */
  files = 0;
  /** Paths of files that are not pages. */
  readonly paths: string[] = [];
  readonly #page = new PageBuffer();

  constructor(
    private readonly root: string,
    private readonly findings: Findings,
  ) {}

  page(path: string, head: string, records: Uint8Array): void {
    this.#compare(path, this.#page.join(head, records), `is not the page that a build makes of its block's records`);
  }

  file(path: string, bytes: Uint8Array): void {
    this.paths.push(path);
    this.#compare(path, bytes, 'is not the file that a build makes of the manifest and the blocks');
  }

  link(path: string, target: string): void {
    const original = `${this.root}/${target}`;
    if (isSameFile(`${this.root}/${path}`, original)) this.files += 1;
    // If only the other path lacks a page, there is a finding about that path already.
    else {
      const expected = attempt(() => readRegularFile(original));
      this.#compare(path, expected, `differs from ${target}`);
    }
  }

  /** Counts files that are not pages and were compared elsewhere. */
  add(paths: Iterable<string>): void {
    for (const path of paths) {
      this.paths.push(path);
      this.files += 1;
    }
  }

  /** Counts a file. Adds a finding if it is missing, is not a regular file, or has other bytes than `expected`, if given. */
  #compare(path: string, expected: Uint8Array | undefined, difference: string): void {
    try {
      const present = readRegularFile(`${this.root}/${path}`);
      this.files += 1;
      if (expected !== undefined && !present.equals(expected)) this.findings.add(`${path} ${difference}`);
    } catch (error) {
      if (error instanceof NotAFileError) this.findings.add(`${path} ${error.message}`);
      else if (isAbsence(error)) this.findings.add(`${path} is missing`);
      else throw error;
    }
  }
}
