/** Reads the archive in an output folder, for builds, which copy unchanged parts of it, and for verification. */
import { createHash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { openFile } from '../../contract/archiveFile.ts';
import { NotAFileError, openRegularFile, readRegularFile } from '../../disk/regularFile.ts';
import { codeOf, isAbsence, messageOf } from '../../errors.ts';
import { ArchiveError } from '../../format/archiveError.ts';
import { Archive, type RootName } from '../../format/archiveReader.ts';
import { findDocuments, placeMembers } from '../../format/documents.ts';
import { FormatError } from '../../format/formatVersion.ts';
import type { DocumentFile, DocumentLevel } from '../../format/levels.ts';
import { PartCache } from '../../format/partCache.ts';
import { parseRoot, type Root } from '../../format/root.ts';
import { type PlacedBlock, parseDirectory, type Segment } from '../../format/segmentDirectory.ts';
import { verifiedRead } from '../../format/verifiedRead.ts';
import { archivePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import { siteOf } from '../../pages/mirrorOptions.ts';
import { inflate, inflateBytes } from '../render/compress.ts';

interface OpenedSegment {
  readonly segment: Segment;
  readonly pages: Buffer;
  readonly blocks: Map<number, PlacedBlock>;
}

/** A document (format/documents.ts). */
export interface StoredDocument {
  readonly key: string;
  readonly values: readonly string[];
}

/** Number of documents that are looked up at the same time, each in a member of its own. */
const AT_ONCE = 64;

/** Bytes of parts of files that are kept in memory, and of tails. Neighbouring keys need the same directories and members. */
const KEPT_BYTES = 4 * 1024 * 1024;

export class StoredArchive {
  readonly root: Root;
  #last: OpenedSegment | undefined;
  #parts: Promise<Archive> | undefined;

  /** Opens the archive that the manifest in an output folder names. Throws an ArchiveError if it names none, or if it cannot be read. */
  static in(out: string): StoredArchive {
    const archive = StoredArchive.find(out);
    if (archive === undefined) throw new ArchiveError(`${join(out, MANIFEST_PATH)} names no archive`);
    return archive;
  }

  /** Like `in`, but returns undefined if the manifest names no archive. */
  static find(out: string): StoredArchive | undefined {
    const path = join(out, MANIFEST_PATH);
    let listRoot: RootName | undefined;
    try {
      listRoot = siteOf(JSON.parse(readRegularFile(path).toString())).listRoot;
    } catch (error) {
      throw new ArchiveError(error instanceof FormatError ? error.message : `${path} cannot be read: ${messageOf(error)}`);
    }
    return listRoot && new StoredArchive(out, listRoot);
  }

  /** Reads the root. Throws an ArchiveError when it is missing or damaged. */
  constructor(
    private readonly out: string,
    readonly name: RootName,
  ) {
    const content = this.read(name.root);
    if (content.length !== name.bytes)
      throw new ArchiveError(
        `${join(out, archivePath(name.root))} has ${content.length} bytes of content, but ${MANIFEST_PATH} says ${name.bytes}`,
      );
    this.root = this.#orChanged(name.root, () => parseRoot(inflate(content)));
  }

  /** Reads a file's content. Throws an ArchiveError if the content does not match the hash in the file's name. */
  read(file: string): Buffer {
    return this.#orChanged(file, () => {
      const content = openFile(file, readRegularFile(this.#pathOf(file)));
      if (content === undefined) throw new ArchiveError('does not match the hash in its name');
      return content;
    });
  }

  /** Returns the pages and directory of a segment. Caches the last segment, because callers read blocks one by one. */
  segment(segment: Segment): OpenedSegment {
    if (this.#last?.segment === segment) return this.#last;
    const content = this.read(segment.file);
    return this.#orChanged(segment.file, () => {
      const end = segment.bytes - segment.directory;
      const blocks = parseDirectory(inflate(content.subarray(end)), segment);
      this.#last = { segment, pages: content.subarray(0, end), blocks };
      return this.#last;
    });
  }

  /** Opens the archive for reading in parts. Reads reject with an ArchiveError if bytes do not match the file's name. */
  parts(): Promise<Archive> {
    this.#parts ??= this.#openParts();
    return this.#parts;
  }

  async #openParts(): Promise<Archive> {
    const digest = async (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
    const read = verifiedRead(async (file, offset, length) => this.#readPart(file, offset, length), digest, new PartCache(KEPT_BYTES));
    const cache = new PartCache(KEPT_BYTES);
    await cache.root(this.name.root, async () => this.root);
    return Archive.open(this.name, { read, inflate: async (member) => inflate(member) }, cache);
  }

  /** Reads a part of a file. Returns undefined if the file is missing, too short, or not a regular file. */
  #readPart(file: string, offset: number, length: number): Buffer | undefined {
    try {
      const handle = openRegularFile(this.#pathOf(file));
      try {
        const part = Buffer.allocUnsafeSlow(length);
        return readSync(handle, part, 0, length, offset) === length ? part : undefined;
      } finally {
        closeSync(handle);
      }
    } catch (error) {
      if (error instanceof NotAFileError || isAbsence(error)) return undefined;
      throw error;
    }
  }

  /** Yields the documents of a level that have these keys, in their order. Ascending keys take the fewest reads. */
  async *find(level: DocumentLevel, keys: readonly string[]): AsyncGenerator<StoredDocument> {
    for (let at = 0; at < keys.length; at += AT_ONCE) {
      const some = keys.slice(at, at + AT_ONCE);
      const found = await findDocuments(await this.parts(), level, some);
      for (const [i, key] of some.entries()) if (found[i] !== undefined) yield { key, values: found[i] };
    }
  }

  #pathOf(file: string): string {
    return join(this.out, archivePath(file));
  }

  /** Runs `read`. Throws an ArchiveError if the file is missing, damaged, of another format version, or not a regular file. */
  #orChanged<Result>(file: string, read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      if (error instanceof FormatError) throw new ArchiveError(error.message);
      const code = codeOf(error);
      const isDamage =
        error instanceof ArchiveError || error instanceof NotAFileError || code?.startsWith('Z_') || code?.startsWith('ERR_');
      if (!isDamage && !isAbsence(error)) throw error;
      throw new ArchiveError(`${this.#pathOf(file)} was changed since the last build`);
    }
  }
}

/** A document whose values are not decoded yet. */
export interface StoredLine {
  readonly key: string;
  /** The values in UTF-8, with a tab before each. The string is Latin-1: each character stands for one byte. */
  readonly bytes: string;
}

/** Yields all documents of a level of the last build, by ascending key. Throws an ArchiveError for damage. */
export function* documentsOf(old: Pick<StoredArchive, 'read'>, level: DocumentLevel): Generator<StoredDocument> {
  for (const { key, bytes } of linesOf(old, level)) yield { key, values: Buffer.from(bytes, 'latin1').toString().split('\t').slice(1) };
}

/** Like `documentsOf`, but does not decode the values. */
export function* linesOf(old: Pick<StoredArchive, 'read'>, { files }: DocumentLevel): Generator<StoredLine> {
  let last: string | undefined;
  for (const file of files) {
    const content = old.read(file.file);
    const part = (offset: number, length: number) => content.subarray(offset, offset + length);
    if (content.length !== file.bytes) throw wrong(file, 'has another size than the root says');
    const directory = () => file.members ?? inflate(part(file.bytes - file.directory, file.directory));
    const members = orWrong(() => placeMembers(directory(), file), file, 'has a damaged directory of documents');
    for (const { from, offset, length } of members) {
      // Keys are ASCII, so Latin-1 decodes them correctly.
      const text = orWrong(() => inflateBytes(part(offset, length)).toString('latin1'), file, 'is damaged');
      if (last !== undefined && last >= from) throw misplaced(file, last);
      for (let at = 0; at < text.length; ) {
        const end = positionIn(text, '\n', at);
        const tab = Math.min(positionIn(text, '\t', at), end);
        const key = text.slice(at, tab);
        if (key < from || (last !== undefined && key <= last)) throw misplaced(file, key);
        yield { key, bytes: text.slice(tab, end) };
        last = key;
        at = end + 1;
      }
    }
  }
}

/** Returns the position of `mark` in a text, from `start` on. Returns the length of the text if it has none. */
function positionIn(text: string, mark: string, start: number): number {
  const position = text.indexOf(mark, start);
  return position < 0 ? text.length : position;
}

const wrong = ({ file }: DocumentFile, what: string) => new ArchiveError(`the archive's file ${file} ${what}`);
const misplaced = (file: DocumentFile, key: string) => wrong(file, `has the document ${key} in a wrong place`);

function orWrong<Value>(read: () => Value, file: DocumentFile, what: string): Value {
  try {
    return read();
  } catch {
    throw wrong(file, what);
  }
}
