/**
 * The files of etchings in layout `files`: pages of JSON objects, oldest first, and files of names. A rune's names are
 * its id, its number, and its name in upper case without spacers.
 */
import { nameKeyOf } from '../archive/nameKey.ts';

const HEAD = '{"etchings":[\n';
const TAIL = '\n]}\n';

/** Makes the text of a page. A page has at least one etching. */
export const renderEtchingPage = (etchings: readonly string[]): string => HEAD + etchings.join(',\n') + TAIL;

/** Splits a page into the JSON of its etchings. Returns undefined for text that is not a page. */
export function readEtchingPage(text: string): readonly string[] | undefined {
  if (!text.startsWith(HEAD) || !text.endsWith(TAIL) || text.length < HEAD.length + TAIL.length) return undefined;
  return text.slice(HEAD.length, -TAIL.length).split(',\n');
}

/** Names go into as many files as keep some 700 of them in each. */
const RUNES_PER_FILE = 256;

/** Returns the number of files of names for this many etchings: a power of two. */
export function nameFiles(total: number): number {
  let files = 1;
  while (files * RUNES_PER_FILE < total) files *= 2;
  return files;
}

/** Returns which of `files` files has a name. */
export const fileOfName = (name: string, files: number): number => nameKeyOf(name) % files;

/** Makes the text of a file of names. `files` is how many there are. */
export const renderNames = (files: number, ordinals: Readonly<Record<string, number>>): string =>
  `${JSON.stringify({ files, ordinals })}\n`;

/**
 * Returns the ordinal of a name in the text of its file; undefined if it is not there. Throws for text that is not a
 * file of names, or one of another number of files.
 */
export function findName(text: string, name: string, files: number): number | undefined {
  const found = Object(JSON.parse(text)) as Readonly<Record<string, unknown>>;
  const ordinals = Object(found['ordinals']) as Readonly<Record<string, unknown>>;
  const ordinal = Object.hasOwn(ordinals, name) ? ordinals[name] : undefined;
  if (found['files'] !== files || (ordinal !== undefined && !Number.isSafeInteger(ordinal))) throw new Error('not a file of these names');
  return ordinal === undefined ? undefined : Number(ordinal);
}
