/** A file sink that does not write files: it checks that each file in the output has the expected content. */
import { lstatSync } from 'node:fs';
import { NotAFileError, readRegularFile } from '../disk/regularFile.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import { isAbsence } from '../errors.ts';
import { ENVELOPE_TAIL } from '../pages/envelope.ts';
import type { Findings } from './findings.ts';

export class ComparingSink implements FileSink {
  /** Number and total size in bytes of the files that were found. */
  files = 0;
  bytes = 0;
  /** Paths of files that are not pages. */
  readonly paths: string[] = [];

  constructor(
    private readonly root: string,
    private readonly findings: Findings,
  ) {}

  page(path: string, head: string, records: Uint8Array): void {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    const present = this.#read(path);
    if (present === undefined) return;
    const isSame =
      present.length === length &&
      present.toString('latin1', 0, head.length) === head &&
      present.subarray(head.length, length - ENVELOPE_TAIL.length).equals(records) &&
      present.toString('latin1', length - ENVELOPE_TAIL.length) === ENVELOPE_TAIL;
    if (!isSame) this.findings.add(`${path} is not the page that a build makes of its block's records`);
  }

  link(path: string, target: string): void {
    try {
      const [link, file] = [lstatSync(`${this.root}/${path}`), lstatSync(`${this.root}/${target}`)];
      if (link.ino === file.ino && link.dev === file.dev && link.isFile()) return void this.#count(link.size);
    } catch (error) {
      if (!isAbsence(error)) throw error;
    }
    // `path` and `target` are not hard links of one file. So one of them is missing, or `path` is a copy, as on file
    // systems without hard links.
    const present = this.#read(path);
    if (present !== undefined && !present.equals(this.#readQuietly(target) ?? present)) this.findings.add(`${path} differs from ${target}`);
  }

  file(path: string, bytes: Uint8Array): void {
    this.paths.push(path);
    const present = this.#read(path);
    if (present !== undefined && !present.equals(bytes))
      this.findings.add(`${path} is not the file that a build makes of the manifest and the blocks`);
  }

  /** Reads a file, and counts it. If it is missing or not a regular file, adds a finding and returns undefined. */
  #read(path: string): Buffer | undefined {
    try {
      const present = readRegularFile(`${this.root}/${path}`);
      this.#count(present.length);
      return present;
    } catch (error) {
      if (error instanceof NotAFileError) this.findings.add(`${path} ${error.message}`);
      else if (isAbsence(error)) this.findings.add(`${path} is missing`);
      else throw error;
      return undefined;
    }
  }

  #readQuietly(path: string): Buffer | undefined {
    try {
      return readRegularFile(`${this.root}/${path}`);
    } catch (error) {
      if (error instanceof NotAFileError || isAbsence(error)) return undefined;
      throw error;
    }
  }

  #count(bytes: number): void {
    this.files += 1;
    this.bytes += bytes;
  }
}
