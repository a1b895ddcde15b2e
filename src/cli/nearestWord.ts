/** Suggests the nearest known word for a mistyped one. */
import { distance } from 'fastest-levenshtein';

/** One of three letters may be wrong, and three at most. An abbreviation has three letters at least. */
const [LETTERS_PER_FAULT, MOST_FAULTS, LEAST_PREFIX] = [3, 3, 3];

/** Returns the word nearest to `given`, ignoring case. Of several, returns the first. Undefined if no word is near. */
function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = given.toLowerCase();
  let best: { readonly word: string; readonly faults: number } | undefined;
  for (const word of words) {
    const faults = faultsBetween(meant, word.toLowerCase());
    if (faults !== undefined && faults < (best?.faults ?? Number.POSITIVE_INFINITY)) best = { word, faults };
  }
  return best?.word;
}

/** Counts wrong letters. Returns undefined if there are too many for a typing error. */
function faultsBetween(meant: string, word: string): number | undefined {
  if (meant === word) return 0;
  const most = Math.min(MOST_FAULTS, Math.max(1, Math.floor(Math.max(meant.length, word.length) / LETTERS_PER_FAULT)));
  const faults = distance(meant, word);
  // Swapped letters, the most common typing error, count as one wrong letter, although distance() counts two.
  if (meant.length > 1 && sorted(meant) === sorted(word) && faults <= MOST_FAULTS) return 1;
  // An abbreviation ranks after a word with a typing error.
  const isPrefix = meant.length >= LEAST_PREFIX && word.startsWith(meant);
  if (faults >= Math.max(meant.length, word.length)) return undefined;
  return faults <= most ? faults : isPrefix ? MOST_FAULTS + 1 : undefined;
}

const sorted = (word: string): string => [...word].sort().join('');

/** Returns `; did you mean --input?`, or an empty text if no word is near. `spell` formats the word. */
export function didYouMean(given: string, words: readonly string[], spell = (word: string) => word): string {
  const word = nearest(given, words);
  return word === undefined ? '' : `; did you mean ${spell(word)}?`;
}

export const unknownCommand = (given: string, names: readonly string[]): string =>
  `Error: unknown command ${JSON.stringify(given)}; commands are ${names.join(', ')}${didYouMean(given, names)}\n`;
