/** Finds the words of names of runes. Uses no DOM. */

/**
 * Returns the position of the first word of a name at which `letters` begin. Ignores spacers, so the letters may
 * continue in the next words. -1 if there is no such word.
 */
export function wordAt(spacedName: string, letters: string): number {
  const words = spacedName.split('•');
  const found = words.findIndex((_, i) => words.slice(i).join('').startsWith(letters));
  return found < 0 ? -1 : words.slice(0, found).reduce((length, word) => length + word.length + 1, 0);
}
