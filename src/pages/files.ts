/**
 * How the page map reads the files of a build. Each host has its own implementation.
 */

export interface OpenFile {
  /**
   * Returns the content. ASCII characters must be themselves. A host may decode other bytes in any way that it reverses
   * when it sends a body: bodies are cut only at ASCII characters.
   */
  text(): Promise<string>;
  /** Releases a file that will not be read. Absent when open files need no release. */
  close?(): Promise<void>;
}

/**
 * Opens files of a build. `path` is like `runes/v1/...`. Resolves to undefined when the file does not exist, and rejects
 * when the host cannot tell. `File` is the host's own type, so that it can send a page unchanged.
 */
export interface Files<File extends OpenFile> {
  open(path: string): Promise<File | undefined>;
  /**
   * Reads `length` bytes of a file from `offset` on (layout `archive`); `isWhole` tells that this is the whole file, so
   * that no range needs to be requested. Resolves to undefined when the file is missing or shorter, and rejects when the
   * host cannot tell.
   */
  read(path: string, offset: number, length: number, isWhole: boolean): Promise<Uint8Array | undefined>;
  /**
   * Inflates one gzip member, and decodes it as `text()` does. Rejects for other bytes, a wrong checksum, and content of
   * more than `most` bytes.
   */
  inflate(member: Uint8Array, most: number): Promise<string>;
}

/**
 * A required file is missing, or belongs to another build than the files read with it. The build is being replaced or
 * is incomplete. The caller may try again.
 */
export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
  constructor(path: string, what = 'is missing from the build') {
    super(`${path} ${what}`);
  }
}
