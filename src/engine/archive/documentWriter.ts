/** Writes and reads levels (format/levels.ts) of documents (format/documents.ts). */
import { isAscii } from 'node:buffer';
import { countBefore } from '../../format/binarySearch.ts';
import { separatorOf } from '../../format/documentKeys.ts';
import { placeMembers, renderMembers } from '../../format/documents.ts';
import type { DocumentFile, DocumentLevel, LevelRange } from '../../format/levels.ts';
import { exceeds, type Limits } from '../../limits.ts';
import { gzipMember, gzipMemberInPool, inflate, inflateBytes } from '../render/compress.ts';
import type { PutFile } from './segmentWriter.ts';
import { ChangedArchiveError, type StoredArchive, type StoredFile } from './storedArchive.ts';

export interface StoredDocument {
  readonly key: string;
  readonly values: readonly string[];
}

/** A member that is not in a file yet. `gzip` is undefined until it is compressed. */
interface Packed {
  readonly from: string;
  readonly bytes: Uint8Array;
  gzip: Uint8Array | undefined;
}

/**
 * Maximum number of members that Node's threads compress at the same time, and of members in memory. The main thread
 * receives no compressed member while it adds documents without a pause. Then it must compress the first members itself.
 */
const [MOST_AT_ONCE, MOST_PACKED] = [4, 32];

/**
 * Packs documents into files. The caller adds documents as lines, by ascending key. Several lines form a gzip member,
 * and several members a file. The members of a file have at most `objectSize` bytes in total, unless a single member is
 * larger.
 */
export class DocumentWriter {
  readonly #files: DocumentFile[] = [];
  #members: { readonly from: string; readonly gzip: Uint8Array }[] = [];
  #bytes = 0;
  /** Lines of the last member, and their number of bytes and of UTF-16 characters. */
  #lines: Uint8Array[] = [];
  #length = 0;
  #size = 0;
  /** Lower bound of the keys of the last member. */
  #from = '';
  /** Members that are not in a file yet, because the first of them is not compressed yet. */
  readonly #packed: Packed[] = [];
  readonly #compressing = new Set<Promise<void>>();
  /** Key of the document that was added last. */
  #last: Uint8Array | undefined;

  constructor(
    private readonly objectSize: number,
    private readonly limits: Pick<Limits, 'documentMember'>,
    private readonly put: PutFile,
    /** True if the root gets the directories of the files (`members` of a DocumentFile). */
    private readonly isInRoot = false,
  ) {}

  /**
   * Adds consecutive documents as UTF-8 lines, each with a line feed at its end. Checks the order of ASCII lines only now
   * and then. The caller must not change the bytes afterwards.
   */
  addLines(lines: Buffer): void {
    const most = Math.min(this.limits.documentMember, this.objectSize);
    const areCharacters = isAscii(lines);
    for (let at = 0; at < lines.length; ) {
      if (!areCharacters) {
        const line = lines.subarray(at, lines.indexOf(LINE_FEED, at) + 1);
        this.#add(line, countCharacters(line), 0);
        at += line.length;
        continue;
      }
      // Takes as many lines as fit into the last member, or else into a new member, but at least one.
      const fitting = (room: number) =>
        lines.length - at <= room ? lines.length : room > 0 ? lines.lastIndexOf(LINE_FEED, at + room - 1) + 1 : at;
      let end = fitting(most - this.#size);
      if (end <= at) end = this.#length > 0 ? fitting(most) : end;
      if (end <= at) end = lines.indexOf(LINE_FEED, at) + 1;
      this.#add(lines.subarray(at, end), end - at, Math.max(lines.lastIndexOf(LINE_FEED, end - 2) + 1 - at, 0));
      at = end;
    }
  }

  /** Adds lines, which have this number of UTF-16 characters, to the same member. The last line begins at `start`. */
  #add(lines: Uint8Array, characters: number, start: number): void {
    const key = lines.subarray(0, lines.indexOf(TAB));
    if (this.#last !== undefined && Buffer.compare(key, this.#last) <= 0)
      throw new Error(`documents are not sorted: ${textOf(key)} was added after ${textOf(this.#last)}`);
    const size = this.#size + characters;
    if (this.#length > 0 && (exceeds(this.limits, 'documentMember', size) || size > this.objectSize))
      this.#endMember(this.#compressing.size >= MOST_AT_ONCE);
    if (this.#length === 0) this.#from = this.#last === undefined ? '' : separatorOf(textOf(this.#last), textOf(key));
    this.#lines.push(lines);
    this.#length += lines.length;
    this.#size += characters;
    this.#last = start === 0 ? key : lines.subarray(start, lines.indexOf(TAB, start));
  }

  /** Compresses the last member: here, or in a thread of Node. */
  #endMember(isHere: boolean): void {
    const member: Packed = { from: this.#from, bytes: Buffer.concat(this.#lines, this.#length), gzip: undefined };
    [this.#lines, this.#length, this.#size] = [[], 0, 0];
    this.#packed.push(member);
    if (isHere) member.gzip = gzipMember(member.bytes);
    else {
      const compressing = gzipMemberInPool(member.bytes).then((gzip) => {
        member.gzip ??= gzip;
        this.#compressing.delete(compressing);
        this.#takePacked();
      });
      this.#compressing.add(compressing);
      // finish() throws this error. Without a handler until then, Node would end the process because of an unhandled
      // rejection.
      compressing.catch(() => undefined);
    }
    this.#takePacked();
  }

  /** Adds compressed members to files, up to the first member that is not compressed. */
  #takePacked(): void {
    for (let [member] = this.#packed; member !== undefined; [member] = this.#packed) {
      if (this.#packed.length > MOST_PACKED) member.gzip ??= gzipMember(member.bytes);
      if (member.gzip === undefined) return;
      this.#packed.shift();
      this.#addMember(member.from, member.gzip);
    }
  }

  #addMember(from: string, gzip: Uint8Array): void {
    if (this.#members.length > 0 && this.#bytes + gzip.length > this.objectSize) this.#endFile();
    this.#members.push({ from, gzip });
    this.#bytes += gzip.length;
  }

  #endFile(): void {
    const [first] = this.#members;
    if (first === undefined) return;
    const members = this.#members.map(({ from, gzip }) => [from, gzip.length] as const);
    const directory = this.isInRoot ? new Uint8Array() : gzipMember(Buffer.from(renderMembers(members)));
    this.#files.push({
      from: first.from,
      file: this.put([...this.#members.map(({ gzip }) => gzip), directory]),
      bytes: this.#bytes + directory.length,
      directory: directory.length,
      ...(this.isInRoot ? { members } : {}),
    });
    this.#members = [];
    this.#bytes = 0;
  }

  /** Writes the last file. Returns undefined if no document was added. */
  async finish({ first, last }: LevelRange): Promise<DocumentLevel | undefined> {
    // Sends no member of a short level to a thread, because this takes as long as compressing it.
    if (this.#length > 0) this.#endMember(true);
    await Promise.all(this.#compressing);
    this.#endFile();
    return this.#files.length === 0 ? undefined : { first, last, files: this.#files };
  }
}

const [TAB, LINE_FEED] = [9, 10];

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();

/**
 * Returns the number of UTF-16 characters in a UTF-8 text, which is the length of a JavaScript string. Bytes 0x80 to
 * 0xbf continue a character. A character whose first byte is 0xf0 or above counts as two in UTF-16.
 */
function countCharacters(text: Uint8Array): number {
  if (isAscii(text)) return text.length;
  let count = 0;
  // With an index, the loop takes two fifths of the time of `for (const byte of text)`.
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i] ?? 0;
    if (byte < 0x80 || byte > 0xbf) count += byte < 0xf0 ? 1 : 2;
  }
  return count;
}

/** A document whose values are not decoded yet. */
export interface StoredLine {
  readonly key: string;
  /** The values in UTF-8, with a tab before each. The string is Latin-1: each character stands for one byte. */
  readonly bytes: string;
}

/** A gzip member of a file. `from` is a lower bound of its keys. */
interface Member {
  readonly from: string;
  /** Reads the text, and checks the order of its documents. */
  readonly content: () => Buffer;
}

/** Decodes the values of a line. Copies them, because a slice would keep the complete text of the member in memory. */
const documentOf = ({ key, bytes }: StoredLine): StoredDocument => ({
  key,
  values: Buffer.from(bytes, 'latin1').toString().split('\t').slice(1),
});

/**
 * Returns the members of the file at index `at` of a level. `read` reads a part of the file. Throws a
 * ChangedArchiveError if the file is damaged, or if a document is outside the bounds of its member.
 */
function membersOf({ files }: DocumentLevel, at: number, read: (offset: number, length: number) => Uint8Array): Member[] {
  const file = files[at];
  if (file === undefined) return [];
  const directory = () => file.members ?? inflate(read(file.bytes - file.directory, file.directory));
  const members = orUndefined(() => placeMembers(directory(), file));
  if (members === undefined) throw wrong(file, 'has a damaged directory of documents');
  return members.map(({ from, offset, length }, i) => {
    const next = members[i + 1]?.from ?? files[at + 1]?.from;
    const content = () => {
      const bytes = orUndefined(() => inflateBytes(read(offset, length)));
      if (bytes === undefined) throw wrong(file, 'is damaged');
      const strange = misplacedIn(bytes, from, next);
      if (strange !== undefined) throw wrong(file, `has the document ${strange} in a wrong place`);
      return bytes;
    };
    return { from, content };
  });
}

/** Returns the first key in a member that is outside of its bounds, or not above the key before it. Undefined without one. */
function misplacedIn(content: Buffer, from: string, next: string | undefined): string | undefined {
  // Keys as slices of one Latin-1 text are compared faster than keys as texts of their own or as bytes.
  const all = content.toString('latin1');
  let before: string | undefined;
  for (let start = 0; start < all.length; ) {
    const end = positionIn(all, '\n', start);
    const key = all.slice(start, Math.min(positionIn(all, '\t', start), end));
    if (before === undefined ? key < from : key <= before) return key;
    before = key;
    start = end + 1;
  }
  return before === undefined || next === undefined || before < next ? undefined : before;
}

/** A text or bytes, in which a text or a byte is searched. */
interface Searched<Mark> {
  readonly length: number;
  readonly indexOf: (mark: Mark, start: number) => number;
}

/** Returns the position of `mark` in a content, from `start` on. Returns the length of the content if it has none. */
function positionIn<Mark>(content: Searched<Mark>, mark: Mark, start: number): number {
  const position = content.indexOf(mark, start);
  return position < 0 ? content.length : position;
}

const wrong = ({ file }: DocumentFile, what: string) => new ChangedArchiveError(`the archive's file ${file} ${what}`);

/**
 * Calls `read`. Returns undefined if `read` throws, so that the caller can name the damage. Rethrows a
 * ChangedArchiveError, because its message names the damage already.
 */
function orUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ChangedArchiveError) throw error;
    return undefined;
  }
}

/** Yields all documents of a level of the last build, by ascending key. Throws a ChangedArchiveError for damage. */
export function* documentsOf(old: Pick<StoredArchive, 'read'>, level: DocumentLevel): Generator<StoredDocument> {
  for (const line of linesOf(old, level)) yield documentOf(line);
}

/** Like `documentsOf`, but does not decode the values. */
export function* linesOf(old: Pick<StoredArchive, 'read'>, level: DocumentLevel): Generator<StoredLine> {
  for (const [at, file] of level.files.entries()) {
    const content = old.read(file.file);
    if (content.length !== file.bytes) throw wrong(file, 'has another size than the root says');
    for (const member of membersOf(level, at, (offset, length) => content.subarray(offset, offset + length)))
      yield* linesFrom(member.content(), 0);
  }
}

/** Range of keys, from `from` (inclusive) to `end` (exclusive). `end` begins with `from`, so all keys of the range do (`rangeOf`). */
export interface KeyRange {
  readonly from: string;
  readonly end: string;
}

/** Ranges that ascend and do not overlap. */
export type KeyRanges = AsyncIterable<KeyRange> | Iterable<KeyRange>;

/** Returns the range of a key and of the keys that continue it with texts below `ending`. */
export const rangeOf = (key: string, ending: string): KeyRange => ({ from: key, end: `${key}${ending}` });

/** Returns the range that has only `key`, because no key sorts between `key` and `key` followed by a space. */
export const onlyKey = (key: string): KeyRange => rangeOf(key, ' ');

/** Returns the range of a key, its pages (`pageKey`) and its pairs (`pairKey`), whose keys continue with a space. */
export const withPages = (key: string): KeyRange => rangeOf(key, '!');

/**
 * Yields the documents of a level of the last build whose keys are in `ranges`.
 * Reads only the members that may have these keys. For a new block, a build needs a few thousand documents, but a level
 * can have gigabytes. Throws a ChangedArchiveError for a damaged part.
 */
export async function* findRanges(old: StoredArchive, level: DocumentLevel, ranges: KeyRanges): AsyncGenerator<StoredDocument> {
  let opened: { readonly file: DocumentFile; readonly content: StoredFile } | undefined;
  let members: readonly Member[] = [];
  let last: { readonly member: Member; readonly content: Buffer } | undefined;
  try {
    for await (const range of ranges) {
      for (const file of itemsIn(level.files, fromOf, range)) {
        if (opened?.file !== file) {
          opened?.content.close();
          const content = old.open(file.file);
          opened = { file, content };
          members = membersOf(level, level.files.indexOf(file), content.read);
        }
        for (const member of itemsIn(members, fromOf, range)) {
          if (last?.member !== member) last = { member, content: member.content() };
          for (const line of linesIn(last.content, range)) yield documentOf(line);
        }
      }
    }
  } finally {
    opened?.content.close();
  }
}

/** Yields the lines of a member whose keys are in a range. Decodes no others. */
function* linesIn(content: Buffer, { from, end }: KeyRange): Generator<StoredLine> {
  const isFirst = content.toString('latin1', 0, from.length) === from;
  const start = isFirst ? 0 : content.indexOf(`\n${from}`, 0, 'latin1') + 1;
  if (start === 0 && !isFirst) return;
  for (const line of linesFrom(content, start)) {
    if (line.key >= end) return;
    yield line;
  }
}

/**
 * Yields the lines of a member from the one that begins at `start`. Latin-1 makes each byte a character. This decodes keys
 * correctly, because they are ASCII. Callers decode the values that they need.
 */
function* linesFrom(content: Buffer, start: number): Generator<StoredLine> {
  for (let at = start; at < content.length; ) {
    const end = positionIn(content, LINE_FEED, at);
    const keyEnd = Math.min(positionIn(content, TAB, at), end);
    yield { key: content.toString('latin1', at, keyEnd), bytes: content.toString('latin1', keyEnd, end) };
    at = end + 1;
  }
}

const fromOf = ({ from }: { readonly from: string }): string => from;

/** Yields the items that may have keys of the range. Items ascend. `lowest` returns a lower bound of an item's keys. */
function* itemsIn<Item>(items: readonly Item[], lowest: (item: Item) => string, { from, end }: KeyRange): Generator<Item> {
  const isUpTo = (item: Item | undefined) => item !== undefined && lowest(item) <= from;
  let at = Math.max(countBefore(items.length, (i) => isUpTo(items[i])) - 1, 0);
  for (let item = items[at]; item !== undefined && lowest(item) < end; item = items[at]) {
    yield item;
    at += 1;
  }
}
