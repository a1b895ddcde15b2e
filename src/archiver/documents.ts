/**
 * Writes and reads levels of documents (archive/documents.ts).
 */
import { closeSync } from 'node:fs';
import { parseMembers, renderMembers, separatorOf } from '../archive/documents.ts';
import type { DocumentFile, DocumentLevel, LevelRange } from '../archive/levels.ts';
import { exceeds, type PublishedLimits } from '../limits.ts';
import { gzipMember, inflate } from '../write/compress.ts';
import { yieldNow } from '../yieldNow.ts';
import type { PutFile } from './segments.ts';
import { ChangedArchiveError, type StoredArchive } from './storedArchive.ts';

/** A key and the values after it. */
export interface StoredDocument {
  readonly key: string;
  readonly values: readonly string[];
}

/** Packs documents, ascending by key, into files of at most `objectSize` bytes of members, or one member. */
export class DocumentWriter {
  readonly #objectSize: number;
  readonly #limits: Pick<PublishedLimits, 'documentMember'>;
  readonly #put: PutFile;
  readonly #files: DocumentFile[] = [];
  #members: { readonly from: string; readonly gzip: Uint8Array }[] = [];
  #bytes = 0;
  #lines: string[] = [];
  #size = 0;
  #from = '';
  #last: string | undefined;

  constructor(objectSize: number, limits: Pick<PublishedLimits, 'documentMember'>, put: PutFile) {
    this.#objectSize = objectSize;
    this.#limits = limits;
    this.#put = put;
  }

  add({ key, values }: StoredDocument): void {
    if (this.#last !== undefined && key <= this.#last) throw new Error(`the document ${key} comes after ${this.#last}`);
    const line = `${key}\t${values.join('\t')}\n`;
    const size = this.#size + line.length;
    if (this.#lines.length > 0 && (exceeds(this.#limits, 'documentMember', size) || size > this.#objectSize)) this.#endMember();
    if (this.#lines.length === 0) this.#from = this.#last === undefined ? '' : separatorOf(this.#last, key);
    this.#lines.push(line);
    this.#size += line.length;
    this.#last = key;
  }

  #endMember(): void {
    const gzip = gzipMember(Buffer.from(this.#lines.join('')));
    if (this.#members.length > 0 && this.#bytes + gzip.length > this.#objectSize) this.#endFile();
    this.#members.push({ from: this.#from, gzip });
    this.#bytes += gzip.length;
    this.#lines = [];
    this.#size = 0;
  }

  #endFile(): void {
    const [first] = this.#members;
    if (first === undefined) return;
    const directory = gzipMember(Buffer.from(renderMembers(this.#members.map(({ from, gzip }) => [from, gzip.length]))));
    const content = Buffer.concat([...this.#members.map(({ gzip }) => gzip), directory]);
    this.#files.push({ from: first.from, file: this.#put(content), bytes: content.length, directory: directory.length });
    this.#members = [];
    this.#bytes = 0;
  }

  /** Writes the last file. Returns undefined without documents. */
  finish({ first, last }: LevelRange): DocumentLevel | undefined {
    if (this.#lines.length > 0) this.#endMember();
    this.#endFile();
    return this.#files.length === 0 ? undefined : { first, last, files: this.#files };
  }
}

/** Whether keys from `from` on, and before `end`, may be wanted. `end` is undefined for the last keys. */
export type IsWanted = (from: string, end: string | undefined) => boolean;

const ALL: IsWanted = () => true;

/**
 * Yields the documents of a level of the last build, ascending by key, without some that are not wanted. Throws a
 * ChangedArchiveError for a file that is damaged, or in which a reader would not find a document.
 */
export function* documentsOf(old: StoredArchive, { files }: DocumentLevel, isWanted: IsWanted = ALL): Generator<StoredDocument> {
  let last: string | undefined;
  for (const [i, file] of files.entries()) {
    if (!isWanted(file.from, files[i + 1]?.from)) continue;
    const wrong = (what: string) => new ChangedArchiveError(`the archive's file ${file.file} ${what}`);
    const reader = isWanted === ALL ? wholeFile(old, file.file) : partsOf(old, file.file);
    try {
      if (reader.size !== undefined && reader.size !== file.bytes) throw wrong('has another size than the root says');
      const members = orUndefined(() => parseMembers(inflate(reader.read(file.bytes - file.directory, file.directory)), file));
      if (members === undefined) throw wrong('is not a file of documents');
      for (const [j, { from, offset, length }] of members.entries()) {
        const end = members[j + 1]?.from ?? files[i + 1]?.from;
        if (!isWanted(from, end)) continue;
        const text = orUndefined(() => inflate(reader.read(offset, length)));
        if (text === undefined) throw wrong('is damaged');
        for (const line of text.trimEnd().split('\n')) {
          const [key = '', ...values] = line.split('\t');
          const isPlaced = key >= from && (end === undefined || key < end) && (last === undefined || key > last);
          if (!isPlaced) throw wrong(`has the document ${key} in a wrong place`);
          last = key;
          yield { key, values };
        }
      }
    } finally {
      reader.close();
    }
  }
}

/** Reads parts of a file. */
interface PartReader {
  /** Undefined if only parts are read. */
  readonly size: number | undefined;
  readonly read: (offset: number, length: number) => Uint8Array;
  readonly close: () => void;
}

function wholeFile(old: StoredArchive, file: string): PartReader {
  const content = old.read(file);
  return { size: content.length, read: (offset, length) => content.subarray(offset, offset + length), close: () => undefined };
}

/** Reads nothing but the wanted members. Their checksums tell whether they are damaged. */
function partsOf(old: StoredArchive, file: string): PartReader {
  const handle = old.open(file);
  return {
    size: undefined,
    read: (offset, length) => old.readPart(handle, file, offset, length, () => undefined),
    close: () => closeSync(handle),
  };
}

/** Returns undefined when a part is damaged. Rethrows a ChangedArchiveError, which says more. */
function orUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ChangedArchiveError) throw error;
    return undefined;
  }
}

/** A sequence of documents, ascending by key. */
export type Documents = Iterable<StoredDocument> | AsyncIterable<StoredDocument>;

/** Makes one document's values of those with the same key. */
export type JoinValues = (values: readonly (readonly string[])[], key: string) => readonly string[];

/** Yields the documents of several sequences in one. */
export async function* mergeDocuments(sources: readonly Documents[], join: JoinValues): AsyncGenerator<StoredDocument> {
  const open = sources.map((source) => (Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()));
  const heads: (StoredDocument | undefined)[] = [];
  const advance = async (i: number) => {
    const { value, done } = (await open[i]?.next()) ?? { value: undefined, done: true };
    heads[i] = done === true ? undefined : value;
  };
  try {
    for (const i of open.keys()) await advance(i);
    for (;;) {
      await yieldNow();
      let least: string | undefined;
      for (const head of heads) if (head !== undefined && (least === undefined || head.key < least)) least = head.key;
      if (least === undefined) return;
      const same: (readonly string[])[] = [];
      for (const [i, head] of heads.entries()) {
        if (head?.key !== least) continue;
        same.push(head.values);
        await advance(i);
      }
      const [only] = same;
      yield { key: least, values: same.length === 1 && only !== undefined ? only : join(same, least) };
    }
  } finally {
    for (const source of open) await source.return?.(undefined);
  }
}
