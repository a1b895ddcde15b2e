/**
 * Takes the files that should be there and compares them with those that are: the end of the writer's way, turned round.
 */
import { lstatSync } from 'node:fs';
import { codeOf } from '../errors.ts';
import { ENVELOPE_TAIL } from '../pages/envelope.ts';
import type { Encoding } from '../pages/lists.ts';
import { sidecarPath } from '../pages/paths.ts';
import { decompress } from '../write/compress.ts';
import type { FileSink } from '../write/pageFiles.ts';
import { NotAFileError, readRegularFile } from '../write/regularFile.ts';
import type { Findings } from './findings.ts';

export class ComparingSink implements FileSink {
  readonly #root: string;
  readonly #findings: Findings;
  /** Files that were there, and their bytes, without compressed ones. */
  files = 0;
  bytes = 0;
  /** Compressed files that were there. */
  sidecars = 0;

  constructor(root: string, findings: Findings) {
    this.#root = root;
    this.#findings = findings;
  }

  page(path: string, head: string, records: Uint8Array, encodings: readonly Encoding[]): number {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    const present = this.#read(path);
    if (present === undefined) return length;
    const isSame =
      present.length === length &&
      present.toString('latin1', 0, head.length) === head &&
      present.subarray(head.length, length - ENVELOPE_TAIL.length).equals(records) &&
      present.toString('latin1', length - ENVELOPE_TAIL.length) === ENVELOPE_TAIL;
    if (!isSame) this.#findings.add(`${path} is not the page that follows from its block's records`);
    for (const encoding of encodings) this.#compareSidecar(sidecarPath(path, encoding), encoding, present);
    return length;
  }

  /** A compressed file has other bytes where zlib is another, so it is compared by what it unpacks to. */
  #compareSidecar(path: string, encoding: Encoding, page: Buffer): void {
    const present = this.#readOrFind(path);
    if (present === undefined) return;
    this.sidecars += 1;
    let isSame = false;
    try {
      isSame = decompress(present, encoding, page.length).equals(page);
    } catch {
      // Damaged, or of a longer page.
    }
    if (!isSame) this.#findings.add(`${path} is not its page, compressed`);
  }

  link(path: string, target: string, _length: number, encodings: readonly Encoding[]): void {
    this.#compareLink(path, target);
    const { files, bytes } = this;
    for (const encoding of encodings) this.#compareLink(sidecarPath(path, encoding), sidecarPath(target, encoding));
    this.sidecars += this.files - files;
    [this.files, this.bytes] = [files, bytes];
  }

  #compareLink(path: string, target: string): void {
    try {
      const [link, file] = [lstatSync(`${this.#root}/${path}`), lstatSync(`${this.#root}/${target}`)];
      if (link.ino === file.ino && link.dev === file.dev && link.isFile()) {
        this.#count(link.size);
        return;
      }
    } catch (error) {
      if (!isAbsence(error)) throw error;
    }
    // A copy, where there are no hard links; or one of the two is missing.
    const present = this.#read(path);
    if (present !== undefined && !present.equals(this.#readQuietly(target) ?? present)) {
      this.#findings.add(`${path} is not the same as ${target}`);
    }
  }

  file(path: string, bytes: Uint8Array): void {
    const present = this.#read(path);
    if (present !== undefined && !present.equals(bytes)) this.#findings.add(`${path} is not what follows from the manifest and the blocks`);
  }

  #read(path: string): Buffer | undefined {
    const present = this.#readOrFind(path);
    if (present !== undefined) this.#count(present.length);
    return present;
  }

  /** The content of a file; undefined, with a finding, when there is none. */
  #readOrFind(path: string): Buffer | undefined {
    try {
      return readRegularFile(`${this.#root}/${path}`);
    } catch (error) {
      if (error instanceof NotAFileError) this.#findings.add(`${path} ${error.message}`);
      else if (isAbsence(error)) this.#findings.add(`${path} is missing`);
      else throw error;
      return undefined;
    }
  }

  #readQuietly(path: string): Buffer | undefined {
    try {
      return readRegularFile(`${this.#root}/${path}`);
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

/** There is no such file. */
const isAbsence = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');
