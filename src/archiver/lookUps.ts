/**
 * Finds documents of the last build by their keys. Files are read in parts: a block asks for some thousand documents of
 * levels that have gigabytes.
 */
import { closeSync } from 'node:fs';
import { lastUpTo, type PlacedMember, parseMembers } from '../archive/documents.ts';
import type { DocumentFile, DocumentLevel } from '../archive/levels.ts';
import { inflate } from '../write/compress.ts';
import type { StoredDocument } from './documents.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Keys that are equal to `from` or after it, and before `end`. */
export interface KeyRange {
  readonly from: string;
  readonly end: string;
}

/** Returns the range with one key. No key has a character below the space. */
export const onlyKey = (key: string): KeyRange => ({ from: key, end: `${key} ` });

/** Returns the range with a key, and those of its pages and pairs, which continue with a space. */
export const withPages = (key: string): KeyRange => ({ from: key, end: `${key}!` });

/**
 * Yields the documents of a level whose keys are in some ranges. The ranges ascend and do not overlap. Each part of a file
 * is read once. Throws a ChangedArchiveError for a file that is damaged.
 */
export async function* findRanges(
  old: StoredArchive,
  { files }: DocumentLevel,
  ranges: AsyncIterable<KeyRange> | Iterable<KeyRange>,
): AsyncGenerator<StoredDocument> {
  let opened: OpenedFile | undefined;
  try {
    for await (const { from, end } of ranges) {
      let at = Math.max(lastUpTo(files, from), 0);
      for (let file = files[at]; file !== undefined && file.from < end; file = files[at]) {
        if (opened?.file !== file) {
          opened?.close();
          opened = new OpenedFile(old, file);
        }
        yield* opened.documents(from, end);
        at += 1;
      }
    }
  } finally {
    opened?.close();
  }
}

/** A document with the name for keys that `lastUpTo` searches. */
interface Line {
  readonly from: string;
  readonly values: string;
}

function lineOf(text: string): Line {
  const tab = text.indexOf('\t');
  return { from: text.slice(0, tab), values: text.slice(tab + 1) };
}

class OpenedFile {
  readonly file: DocumentFile;
  readonly #old: StoredArchive;
  readonly #handle: number;
  readonly #members: readonly PlacedMember[];
  #last: { readonly member: PlacedMember; readonly lines: readonly Line[] } | undefined;

  constructor(old: StoredArchive, file: DocumentFile) {
    this.file = file;
    this.#old = old;
    this.#handle = old.open(file.file);
    try {
      const { bytes, directory } = file;
      this.#members = this.#read(bytes - directory, directory, (text) => parseMembers(text, file));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #read<Value>(offset: number, length: number, parse: (text: string) => Value): Value {
    const parsed: Value[] = [];
    this.#old.readPart(this.#handle, this.file.file, offset, length, (part) => {
      parsed.push(parse(inflate(part)));
    });
    const [value] = parsed;
    if (value === undefined) throw new Error(`a part of ${this.file.file} was not read`);
    return value;
  }

  *documents(from: string, end: string): Generator<StoredDocument> {
    let at = Math.max(lastUpTo(this.#members, from), 0);
    for (let member = this.#members[at]; member !== undefined && member.from < end; member = this.#members[at]) {
      const lines = this.#linesOf(member);
      for (let i = Math.max(lastUpTo(lines, from), 0); i < lines.length; i += 1) {
        const { from: key = '', values = '' } = lines[i] ?? {};
        if (key >= end) break;
        if (key >= from) yield { key, values: values.split('\t') };
      }
      at += 1;
    }
  }

  #linesOf(member: PlacedMember): readonly Line[] {
    const { offset, length } = member;
    if (this.#last?.member !== member)
      this.#last = { member, lines: this.#read(offset, length, (text) => text.trimEnd().split('\n').map(lineOf)) };
    return this.#last.lines;
  }

  close(): void {
    closeSync(this.#handle);
  }
}
