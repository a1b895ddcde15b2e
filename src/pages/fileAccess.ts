/** Interfaces through which the page map (respond.ts) reads the files of a build. Each host implements them. */
import type { ArchiveFiles } from '../format/archiveReader.ts';

export interface OpenFile {
  /**
   * Returns the content. ASCII bytes must become ASCII characters, because pages are cut only at ASCII characters. A host may decode other
   * bytes in any way, if it encodes the bodies of answers in the same way.
   */
  text(): Promise<string>;
}

/**
 * Opens files of a build. Paths are like `runes/v1/...`. `open` resolves to undefined when the file does not exist, and rejects for any
 * other failure. `File` is the host's own type, so that the host can send a page unchanged. `read` takes the path of an archive's file, not
 * its name. `inflate` decodes as `text()` does.
 */
export interface Files<File extends OpenFile> extends ArchiveFiles {
  open(path: string): Promise<File | undefined>;
}

/**
 * A required file is missing, or belongs to another build than files that were read before. The caller should retry, because the host may
 * just be replacing the build. If the error lasts, the build is incomplete.
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
