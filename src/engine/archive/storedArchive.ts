/**
 * Reads the archive in an output folder. Builds copy unchanged blocks and entries from the archive, and `npm run
 * verify` reads all files of it.
 */
import { closeSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { openFile } from '../../contract/archiveFile.ts';
import { NotAFileError, openRegularFile, readRegularFile } from '../../disk/regularFile.ts';
import { codeOf, isAbsence, messageOf } from '../../errors.ts';
import { ArchiveError } from '../../format/archiveError.ts';
import type { RootName } from '../../format/archiveReader.ts';
import { FormatError } from '../../format/formatVersion.ts';
import { parseRoot, type Root } from '../../format/root.ts';
import { type PlacedBlock, parseDirectory, type Segment } from '../../format/segmentDirectory.ts';
import { archivePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import { siteOf } from '../../pages/mirrorOptions.ts';
import { inflate } from '../render/compress.ts';

/** Thrown if a build cannot copy from the archive, because a file was changed or has another format version. */
export class ChangedArchiveError extends Error {
  override readonly name = 'ChangedArchiveError';
}

/** Runs `read`. Throws a ChangedArchiveError for files of another format version. */
function ofThisFormat<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw error instanceof FormatError ? new ChangedArchiveError(error.message) : error;
  }
}

interface OpenedSegment {
  readonly pages: Buffer;
  readonly blocks: Map<number, PlacedBlock>;
}

export interface StoredFile {
  /** Reads a part of the file. Throws a ChangedArchiveError if the file is too short. */
  readonly read: (offset: number, length: number) => Buffer;
  readonly close: () => void;
}

export class StoredArchive {
  readonly root: Root;
  #last: { readonly segment: Segment; readonly opened: OpenedSegment } | undefined;

  /**
   * Opens the archive that the manifest in an output folder names. Throws a ChangedArchiveError if the manifest names
   * none or the archive cannot be read.
   */
  static in(out: string): StoredArchive {
    const archive = StoredArchive.find(out);
    if (archive === undefined) throw new ChangedArchiveError(`${join(out, MANIFEST_PATH)} names no archive`);
    return archive;
  }

  /**
   * Like `in`, but returns undefined if the manifest names no archive. Throws a ChangedArchiveError if the manifest or
   * the root cannot be read.
   */
  static find(out: string): StoredArchive | undefined {
    const path = join(out, MANIFEST_PATH);
    let text = '';
    try {
      text = readRegularFile(path).toString();
    } catch (error) {
      throw new ChangedArchiveError(`${path} cannot be read: ${messageOf(error)}`);
    }
    const { listRoot } = ofThisFormat(() => siteOf(JSON.parse(text)));
    return listRoot && new StoredArchive(out, listRoot);
  }

  /** Reads the root. Throws a ChangedArchiveError when it is missing or damaged. */
  constructor(
    private readonly out: string,
    readonly name: RootName,
  ) {
    const content = this.read(name.root);
    if (content.length !== name.bytes)
      throw new ChangedArchiveError(
        `${join(out, archivePath(name.root))} has ${content.length} bytes of content, but ${MANIFEST_PATH} says ${name.bytes}`,
      );
    this.root = this.#orChanged(name.root, () => ofThisFormat(() => parseRoot(inflate(content))));
  }

  /** Reads a file's content. Throws a ChangedArchiveError if the content does not match the hash in the file's name. */
  read(file: string): Buffer {
    return this.#orChanged(file, () => {
      const content = openFile(file, readRegularFile(this.#pathOf(file)));
      if (content === undefined) throw new ArchiveError('does not match the hash in its name');
      return content;
    });
  }

  /** Returns the pages and directory of a segment. Caches the last segment, because callers read blocks one by one. */
  segment(segment: Segment): OpenedSegment {
    if (this.#last?.segment !== segment) this.#last = { segment, opened: this.#open(segment) };
    return this.#last.opened;
  }

  #open(segment: Segment): OpenedSegment {
    const content = this.read(segment.file);
    return this.#orChanged(segment.file, () => {
      const end = segment.bytes - segment.directory;
      const text = inflate(content.subarray(end));
      return { pages: content.subarray(0, end), blocks: parseDirectory(text, segment) };
    });
  }

  /** Returns the blocks of a segment. Reads only the segment's directory. */
  directory(segment: Segment): Map<number, PlacedBlock> {
    const content = this.open(segment.file);
    try {
      const packed = content.read(segment.bytes - segment.directory, segment.directory);
      return this.#orChanged(segment.file, () => parseDirectory(inflate(packed), segment));
    } finally {
      content.close();
    }
  }

  /** Opens a file for reading in parts. The caller closes it. */
  open(file: string): StoredFile {
    const handle = this.#orChanged(file, () => openRegularFile(this.#pathOf(file)));
    let isOpen = true;
    return {
      read: (offset, length) =>
        this.#orChanged(file, () => {
          const part = Buffer.allocUnsafeSlow(length);
          if (readSync(handle, part, 0, length, offset) !== length) throw new ArchiveError('is too short');
          return part;
        }),
      close: () => {
        if (isOpen) closeSync(handle);
        isOpen = false;
      },
    };
  }

  #pathOf(file: string): string {
    return join(this.out, archivePath(file));
  }

  /** Runs `read`. Throws a ChangedArchiveError if the file is missing, damaged, or not a regular file. */
  #orChanged<Result>(file: string, read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      if (error instanceof ChangedArchiveError) throw error;
      const code = codeOf(error);
      const isDamage =
        error instanceof ArchiveError || error instanceof NotAFileError || code?.startsWith('Z_') || code?.startsWith('ERR_');
      if (!isDamage && !isAbsence(error)) throw error;
      throw new ChangedArchiveError(`${this.#pathOf(file)} was changed since the last build`);
    }
  }
}
