/** The page of a rune that the mirror does not have: runes with similar names. */

import { distance } from 'fastest-levenshtein';
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { formatHeights } from '../formatValues.ts';
import { el } from './dom.ts';
import { breakable, elsewhere, linkTo } from './parts.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { runesWith, runeView } from './views.ts';

export async function unknownRune(id: string, { find, manifest }: Source): Promise<DetailsPage> {
  const near = await nearNames(lettersOf(id) ?? '', find);
  const shown = near.map(([spacedName, other]) => el('li', {}, linkTo(runeView(lettersOf(spacedName) ?? other), breakable(spacedName))));
  return {
    title: `Rune ${id}`,
    said: 'Nothing here',
    nodes: [
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'No such rune')),
      el('p', {}, 'This mirror has no rune ', el('code', { class: 'whole' }, id), '.'),
      el('p', { class: 'quiet' }, `It knows blocks ${formatHeights(manifest.heights)}.`),
      ...(shown.length === 0 ? [] : [el('h2', {}, 'Similar names'), el('ul', { class: 'links' }, ...shown)]),
      el('p', {}, linkTo(runesWith(''), 'All runes')),
      ...elsewhere(runeView(id)),
    ].filter((node) => node !== undefined),
  };
}

/** Finds similar names: those that begin with as many of the letters as possible, and those with few wrong letters. */
async function nearNames(letters: string, find: Source['find']): Promise<readonly FoundRune[]> {
  if (letters.length < 2) return [];
  let same: readonly FoundRune[] = [];
  for (let length = letters.length; length >= 2 && same.length === 0; length -= 1) same = await find(letters.slice(0, length));
  // The user may have swapped or doubled the first letters, or typed one too many.
  const [a, b, c = ''] = letters;
  const starts = [...new Set([`${a}${b}`, `${b}${a}`, `${a}${c}`, `${b}${c}`])].filter((start) => start.length === 2);
  const others = (await Promise.all(starts.map((start) => find(start)))).flat();
  const wrong = ([spacedName]: FoundRune) => distance(lettersOf(spacedName) ?? '', letters);
  const ranked = [...same, ...others.filter((rune) => wrong(rune) <= letters.length / 4)].sort((x, y) => wrong(x) - wrong(y));
  return ranked.filter(([, id], i) => ranked.findIndex((rune) => rune[1] === id) === i).slice(0, 8);
}
