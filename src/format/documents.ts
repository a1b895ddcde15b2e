/**
 * Documents: small texts that are found by key, in levels (levels.ts). Etchings, balances, holders and outputs are documents.
 *
 * A document is a line with a key and some values, separated by tabs. Lines ascend by key, and about 16 KB of lines form a gzip member. The
 * last gzip member of a file is its directory, as JSON. For each other member, the directory has a lower bound of its keys, and its length
 * in bytes. So a reader finds a document with two rounds of reads: the directory of the file, then a member. The root has the directories
 * of some levels instead (`members` in levels.ts).
 */
import { ArchiveError } from './archiveError.ts';
import type { Archive, PagePlace } from './archiveReader.ts';
import { countBefore } from './binarySearch.ts';
import type { DocumentFile, DocumentLevel } from './levels.ts';

/** A member of a file. `from` is a lower bound of its keys. */
export interface PlacedMember extends PagePlace {
  readonly from: string;
}

export const renderMembers = (members: readonly (readonly [from: string, length: number])[]): string => `${JSON.stringify(members)}\n`;

type Directory = NonNullable<DocumentFile['members']>;

/** Returns the members of a directory, or of its text. Throws an ArchiveError if they do not ascend or do not fill the file. */
export function placeMembers(directory: Directory | string, { from, bytes, directory: size }: DocumentFile): PlacedMember[] {
  const members: PlacedMember[] = [];
  let offset = 0;
  try {
    for (const [start, length] of typeof directory === 'string' ? (JSON.parse(directory) as Directory) : directory) {
      const before = members.at(-1)?.from;
      const isAfter = before === undefined ? start === from : start > before;
      if (!isAfter || !Number.isSafeInteger(length) || length <= 0) throw new Error('not a member');
      members.push({ from: start, offset, length });
      offset += length;
    }
  } catch {
    throw new ArchiveError('a directory of documents is damaged');
  }
  if (offset !== bytes - size) throw new ArchiveError('a directory of documents does not fit its file');
  return members;
}

/** Returns the values of a document in the text of a member. */
function documentIn(text: string, key: string): readonly string[] | undefined {
  // Always begins at the start of a line. Bisection takes a tenth of the time of a search for the key.
  let low = 0;
  let high = text.length;
  while (low < high) {
    const start = text.lastIndexOf('\n', ((low + high) >> 1) - 1) + 1;
    const tab = text.indexOf('\t', start);
    const next = text.indexOf('\n', start);
    const end = next < 0 ? text.length : next;
    const found = text.slice(start, tab);
    if (found === key) return text.slice(tab + 1, end).split('\t');
    if (found < key) low = end + 1;
    else high = start;
  }
  return undefined;
}

/** Returns the values of documents of a level, in the order of `keys`. Rejects with an ArchiveError for a missing or damaged file. */
export async function findDocuments(
  archive: Archive,
  { files }: DocumentLevel,
  keys: readonly string[],
): Promise<(readonly string[] | undefined)[]> {
  // Keys that sort near each other are often in the same member. So each directory and member is read only once.
  const directories = new Map<DocumentFile, Promise<PlacedMember[]>>();
  const members = new Map<string, Promise<string>>();
  const find = async (key: string) => {
    const file = files[lastUpTo(files, key)];
    if (file === undefined) return undefined;
    const directory = directories.get(file) ?? membersOf(archive, file);
    directories.set(file, directory);
    const placed = await directory;
    const member = placed[lastUpTo(placed, key)];
    if (member === undefined) return undefined;
    const place = `${file.file} ${member.offset}`;
    const text = members.get(place) ?? readMember(archive, file, member);
    members.set(place, text);
    return documentIn(await text, key);
  };
  return Promise.all(keys.map(find));
}

export interface FoundDocument {
  readonly level: DocumentLevel;
  readonly values: readonly string[];
}

/**
 * Finds the documents of a key in all levels, in the order of `levels`. If the key is of a list whose pages may be in the next files, also
 * reads the directories of these files. Then the caller needs only one more round of reads for a page. Rejects with an ArchiveError when a
 * file is missing or damaged.
 */
export async function findInLevels(archive: Archive, levels: readonly DocumentLevel[], key: string): Promise<FoundDocument[]> {
  const found = await Promise.all(
    levels.map(async (level) => {
      const [[values]] = await Promise.all([findDocuments(archive, level, [key]), readAhead(archive, level, key)]);
      return { level, values };
    }),
  );
  return found.flatMap(({ level, values }) => (values === undefined ? [] : [{ level, values }]));
}

/** Yields the text of a level, member by member. Rejects with an ArchiveError when a file is missing or damaged. */
export async function* textOf(archive: Archive, { files }: DocumentLevel): AsyncGenerator<string, void, undefined> {
  for (const file of files) for (const member of await membersOf(archive, file)) yield await readMember(archive, file, member);
}

/** Maximum number of directories to read ahead. Each file has one, and even a list with a million entries has pages in no more files. */
const MOST_AHEAD = 2;

/** Reads the directories of the next files that have pages of a key's list. Ignores errors: later reads report them. */
async function readAhead(archive: Archive, { files }: DocumentLevel, key: string): Promise<void> {
  const next = lastUpTo(files, key) + 1;
  const ahead = files.slice(next, next + MOST_AHEAD).filter(({ from }) => from.startsWith(`${key} `));
  await Promise.allSettled(ahead.map((file) => membersOf(archive, file)));
}

const membersOf = async (archive: Archive, file: DocumentFile): Promise<PlacedMember[]> =>
  file.members === undefined ? archive.tail(file, (text) => placeMembers(text, file)) : placeMembers(file.members, file);

async function readMember(archive: Archive, file: DocumentFile, member: PlacedMember): Promise<string> {
  if (file.members !== undefined) return archive.lookUp(file, member);
  const [page] = await archive.pagesAt(file, [member]);
  return page?.text ?? '';
}

/** Returns the index of the last item whose `from` does not sort after `key`; -1 without such an item. Items ascend. */
const lastUpTo = (items: readonly { readonly from: string }[], key: string): number =>
  countBefore(items.length, (i) => (items[i]?.from ?? '') <= key) - 1;

/** Runs `parse`, which parses a document. If it throws, throws an ArchiveError: the checksum was right, so a faulty program wrote it. */
export function orDamaged<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch {
    throw damaged();
  }
}

export const damaged = (): ArchiveError => new ArchiveError('a document of the archive is damaged');

/**
 * Returns the key of an address: itself, with percent-encoding, because hosts may decode characters beyond ASCII in different ways. Returns
 * undefined for text that is not valid Unicode.
 */
export function keyOfAddress(address: string): string | undefined {
  try {
    // Builds make keys with DuckDB's url_encode, which also encodes these five characters.
    return encodeURIComponent(address).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  } catch {
    return undefined;
  }
}

/** Returns the key of a page of a list. Keys of lists have only characters that sort after the space, so pages directly follow `key`. */
export const pageKey = (key: string, page: number): string => `${key} ${String(page).padStart(8, '0')}`;

/** Returns the shortest prefix of `key` that sorts after the key `before`. Keys are ASCII. */
export function separatorOf(before: string, key: string): string {
  let length = 1;
  while (key.slice(0, length) <= before) length += 1;
  return key.slice(0, length);
}
