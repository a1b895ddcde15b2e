/**
 * Search files, with which clients find runes by the first letters of their names. `runes/v1/search/do.json` has the runes whose names
 * begin with DO, oldest first. If these are too many for one file, some third letters get files of their own, such as
 * `runes/v1/search/do/g.json` for DOG. The field `more` lists these letters, and `do.json` keeps only the oldest of their runes. A new rune
 * changes only the files of its first letters.
 */
import { utf8Of } from '../format/sha256.ts';
import { groupBy } from '../groupBy.ts';
import { searchPath } from '../pages/filePaths.ts';
import type { RuneNames } from '../runes/name.ts';

/** A rune in a search file. `symbol` is omitted if it is unknown or the default symbol. */
export type FoundRune = readonly [spacedName: string, id: string, number: number, symbol?: string];

export interface SearchFile {
  readonly runes: readonly FoundRune[];
  /** Letters, without separators. The letters of this file plus one of them have a file of their own. */
  readonly more: string;
}

export interface NamedRune extends RuneNames {
  readonly symbol?: string | undefined;
}

/** Number of letters in the names of the files that a search reads first, such as `do.json`. */
export const FIRST_LETTERS = 2;
/** Maximum number of letters in a name, by the protocol. */
const MOST_LETTERS = 28;
/** Maximum size of a file in bytes. It is small, because a client may load a file after each typed letter. */
export const MOST_BYTES = 32_000;
/** Number of runes, the oldest ones, that a file always has, even if files of longer beginnings have them too. */
const MOST_OF_MANY = 60;

const NAME = /^[A-Z]+$/;
const ID = /^[0-9]{1,15}:[0-9]{1,15}$/;
const NO_SYMBOL = '¤';

/** Returns the letters of a typed name in upper case, without spacers and spaces. Undefined for other characters or too many letters. */
export function lettersOf(text: string): string | undefined {
  const letters = text.replace(/[•.·\s]/g, '').toUpperCase();
  return NAME.test(letters) && letters.length <= MOST_LETTERS ? letters : undefined;
}

/** A rune with its name, and the JSON of its entry with its size in bytes. */
type Row = ReturnType<typeof rowOf>;

/** Yields the search files. Omits runes with names or ids that the protocol forbids, which only wrong data has. */
export function* searchFiles(runes: Iterable<NamedRune>): Generator<[path: string, text: string]> {
  const valid = [...runes].filter(({ name, id }) => lettersOf(name) === name && ID.test(id));
  for (const [first, group] of groupBy(valid, ({ name }) => name.slice(0, FIRST_LETTERS))) {
    group.sort((a, b) => a.number - b.number || (a.id < b.id ? -1 : 1));
    yield* filesOf(first, group.map(rowOf));
  }
}

function rowOf({ name, spaced_name, id, number, symbol }: NamedRune) {
  const entry: FoundRune = [spaced_name.replaceAll('•', '') === name ? spaced_name : name, id, number];
  const hasSymbol = symbol !== undefined && symbol !== NO_SYMBOL && [...symbol].length === 1;
  const json = JSON.stringify(hasSymbol ? [...entry, symbol] : entry);
  return { name, json, bytes: utf8Of(json).length };
}

/**
 * Yields the file of `letters`, and then those of longer letters, from all runes whose names begin with `letters`, oldest first. As long as
 * the file is too large, the next letter whose runes have the most bytes gets a file of its own.
 */
function* filesOf(letters: string, rows: readonly Row[]): Generator<[path: string, text: string]> {
  const next = groupBy(rows, ({ name }) => name.charAt(letters.length));
  // Only wrong data has more than one rune whose complete name is `letters`.
  const exact = next.get('')?.slice(0, MOST_OF_MANY) ?? [];
  next.delete('');
  const oldest = new Set(rows.slice(0, MOST_OF_MANY));
  const letterSizes = [...next].map(([letter, same]) => ({
    letter,
    all: bytesOf(same),
    few: bytesOf(same.filter((row) => oldest.has(row))),
  }));
  letterSizes.sort((a, b) => b.all - a.all || (a.letter < b.letter ? -1 : 1));
  let bytes = EMPTY_BYTES + bytesOf(exact) + letterSizes.reduce((sum, { all }) => sum + all, 0);
  const more = new Set<string>();
  for (const { letter, all, few } of letterSizes) {
    if (bytes <= MOST_BYTES) break;
    more.add(letter);
    bytes += few - all;
  }
  const isExact = new Set(exact);
  const here = rows.filter((row) => {
    const letter = row.name.charAt(letters.length);
    return letter === '' ? isExact.has(row) : oldest.has(row) || !more.has(letter);
  });
  const below = [...more].sort();
  yield fileOf(letters, here, below.join(''));
  for (const letter of below) yield* filesOf(letters + letter, next.get(letter) ?? []);
}

/** Sums the bytes of entries. Adds 3 bytes per entry: a separator of 2 bytes, and possibly a letter in `more`. */
const bytesOf = (rows: readonly Row[]): number => rows.reduce((sum, { bytes }) => sum + bytes + 3, 0);

const fileOf = (letters: string, rows: readonly Row[], more: string): [path: string, text: string] => [
  searchPath(letters),
  `{"runes":[\n${rows.map(({ json }) => json).join(',\n')}\n],"more":"${more}"}\n`,
];
const EMPTY_BYTES = fileOf('A', [], '')[1].length;

/** Parses a search file. Returns undefined for invalid text. */
export function readSearchFile(text: string): SearchFile | undefined {
  try {
    const { runes, more } = Object(JSON.parse(text)) as Partial<SearchFile>;
    const isRune = (rune: unknown) => Array.isArray(rune) && typeof rune[0] === 'string' && typeof rune[1] === 'string';
    return Array.isArray(runes) && typeof more === 'string' && runes.every(isRune) ? { runes, more } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Finds runes whose names begin with `letters`, oldest first: all that fit into a file. `read` resolves to undefined if the file does not
 * exist. Reads the file of the first two letters, and then files of longer letters, one by one.
 */
export async function findRunes(letters: string, read: (path: string) => Promise<SearchFile | undefined>): Promise<FoundRune[]> {
  let known = letters.slice(0, FIRST_LETTERS);
  let file = await read(searchPath(known));
  while (file !== undefined && known.length < letters.length && file.more.includes(letters.charAt(known.length))) {
    known = letters.slice(0, known.length + 1);
    file = await read(searchPath(known));
  }
  return (file?.runes ?? []).filter(([spacedName]) => spacedName.replaceAll('•', '').startsWith(letters));
}
