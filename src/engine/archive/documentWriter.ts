/** Writes levels (format/levels.ts) of documents (format/documents.ts). */
import { isAscii } from 'node:buffer';
import { renderMembers, separatorOf } from '../../format/documents.ts';
import type { DocumentFile, DocumentLevel, LevelRange } from '../../format/levels.ts';
import { exceeds, type Limits } from '../../limits.ts';
import { DOCUMENT_WINDOW, gzipMember, gzipMemberInPool } from '../render/compress.ts';
import type { PutFile } from './segmentWriter.ts';

/** A member that is not in a file yet. `gzip` is undefined until it is compressed. */
interface Packed {
  readonly from: string;
  readonly bytes: Uint8Array;
  gzip: Uint8Array | undefined;
}

/**
 * Maximum number of members that Node's threads compress at the same time, and of members in memory. The main thread receives no compressed
 * member while it adds documents without a pause. Then it must compress the first members itself.
 */
const [MOST_AT_ONCE, MOST_PACKED] = [4, 32];

/**
 * Packs documents into files. The caller adds documents as lines, by ascending key. Several lines form a gzip member, and several members a
 * file. The members of a file have at most `objectSize` bytes in total, unless a single member is larger.
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

  /** Adds lines in UTF-8, with line feeds. Checks the order of ASCII lines only now and then. The caller must not change the bytes. */
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
    if (isHere) member.gzip = gzipMember(member.bytes, DOCUMENT_WINDOW);
    else {
      const compressing = gzipMemberInPool(member.bytes, DOCUMENT_WINDOW).then((gzip) => {
        member.gzip ??= gzip;
        this.#compressing.delete(compressing);
        this.#takePacked();
      });
      this.#compressing.add(compressing);
      // finish() throws this error. Without a handler until then, Node would end the process.
      compressing.catch(() => undefined);
    }
    this.#takePacked();
  }

  /** Adds compressed members to files, up to the first member that is not compressed. */
  #takePacked(): void {
    for (let [member] = this.#packed; member !== undefined; [member] = this.#packed) {
      if (this.#packed.length > MOST_PACKED) member.gzip ??= gzipMember(member.bytes, DOCUMENT_WINDOW);
      if (member.gzip === undefined) return;
      this.#packed.shift();
      const { from, gzip } = member;
      if (this.#members.length > 0 && this.#bytes + gzip.length > this.objectSize) this.#endFile();
      this.#members.push({ from, gzip });
      this.#bytes += gzip.length;
    }
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

/** Returns the length of a UTF-8 text in UTF-16. Bytes 0x80 to 0xbf continue a character, and one that begins with 0xf0 or more is two. */
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
