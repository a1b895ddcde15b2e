/**
 * What somebody may have meant who wrote a word that is none of those there are.
 */
import { distance } from 'fastest-levenshtein';

/** Of words of this many letters, one may be wrong; of twice as many two. */
const LETTERS_A_FAULT = 3;
const MOST_FAULTS = 3;
/** As many letters of a word's beginning tell the word. */
const LEAST_BEGINNING = 3;

/** The word that is nearest to `given`, in any case; undefined when none is near. The first of several that are as near. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = given.toLowerCase();
  let best: { readonly word: string; readonly faults: number } | undefined;
  for (const word of words) {
    const faults = faultsBetween(meant, word.toLowerCase());
    if (faults !== undefined && faults < (best?.faults ?? Number.POSITIVE_INFINITY)) best = { word, faults };
  }
  return best?.word;
}

/** How many letters are wrong; undefined when these are too many for a slip. */
function faultsBetween(meant: string, word: string): number | undefined {
  if (meant === word) return 0;
  const most = Math.min(MOST_FAULTS, Math.max(1, Math.floor(Math.max(meant.length, word.length) / LETTERS_A_FAULT)));
  const faults = distance(meant, word);
  // Letters that changed places count twice in the distance, and are the most usual slip.
  if (meant.length > 1 && sorted(meant) === sorted(word) && faults <= MOST_FAULTS) return 1;
  // What only begins a word comes after what is the word but for a slip.
  const isBeginning = meant.length >= LEAST_BEGINNING && word.startsWith(meant);
  if (faults >= Math.max(meant.length, word.length)) return undefined;
  return faults <= most ? faults : isBeginning ? MOST_FAULTS + 1 : undefined;
}

const sorted = (word: string): string => [...word].sort().join('');

/** `; did you mean --input?`, or nothing when no word is near. `spell` makes the word as it would be written. */
export function didYouMean(given: string, words: readonly string[], spell = (word: string) => word): string {
  const word = nearest(given, words);
  return word === undefined ? '' : `; did you mean ${spell(word)}?`;
}
