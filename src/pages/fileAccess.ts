/** Interfaces through which the page map (respond.ts) reads the files of a build. Each host implements them. */

export interface OpenFile {
  /**
   * Returns the content. ASCII bytes must become ASCII characters, because pages are cut only at ASCII characters. A
   * host may decode other bytes in any way, if it encodes the bodies of answers in the same way.
   */
  text(): Promise<string>;
}

/**
 * Opens files of a build. Paths are like `runes/v1/...`. `open` resolves to undefined when the file does not exist, and
 * rejects for any other failure. `File` is the host's own type, so that the host can send a page unchanged.
 */
export interface Files<File extends OpenFile> {
  open(path: string): Promise<File | undefined>;
  /**
   * Reads `length` bytes of an archive's file from `offset` on. `size` is the size of the complete file: if `length`
   * equals `size`, the host needs no range request. Resolves to undefined when the file is missing or shorter. Rejects
   * for any other failure.
   */
  read(path: string, offset: number, length: number, size: number): Promise<Uint8Array | undefined>;
  /**
   * Inflates one gzip member, and decodes it as `text()` does. Rejects for bytes that are not gzip, for a wrong
   * checksum, and for content of more than `most` bytes.
   */
  inflate(member: Uint8Array, most: number): Promise<string>;
  /** See ArchiveFiles (format/archiveReader.ts). */
  readonly nearBytes?: number | undefined;
}

/**
 * A required file is missing, or belongs to another build than files that were read before. The caller should retry,
 * because the host may just be replacing the build. If the error lasts, the build is incomplete.
 */
export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
  /** Makes `instanceof` compare names, because each bundle of this program has its own class. */
  static override [Symbol.hasInstance](value: unknown): value is MissingFileError {
    return value instanceof Error && value.name === 'MissingFileError';
  }
  constructor(path: string, what = 'is missing from the build') {
    super(`${path} ${what}`);
  }
}
