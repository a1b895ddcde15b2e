/** The page of a rune that the mirror does not have: runes with similar names. */

import { distance } from 'fastest-levenshtein';
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import type { RuneName } from '../../serve/client/mirrorClient.ts';
import { formatHeights } from '../formatValues.ts';
import { el } from './dom.ts';
import { breakable, elsewhere, linkTo } from './parts.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { runesWith, runeView } from './views.ts';
import { wordAt } from './wordAt.ts';

export async function unknownRune(id: string, { find, names: { freeNames }, manifest }: Source): Promise<DetailsPage> {
  const near = await nearNames(lettersOf(id) ?? '', find, (await freeNames().catch(() => undefined)) ?? []);
  const shown = near.map(([spacedName, other]) => el('li', {}, linkTo(runeView(lettersOf(spacedName) ?? other), breakable(spacedName))));
  return {
    title: `Rune ${id}`,
    said: 'Nothing here',
    nodes: [
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'No such rune')),
      el('p', {}, 'This mirror has no rune ', el('code', { class: 'whole' }, id), '.'),
      el('p', { class: 'quiet' }, `It knows blocks ${formatHeights(manifest.heights)}.`),
      ...(shown.length === 0 ? [] : [el('h2', {}, 'Similar names'), el('ul', { class: 'links' }, ...shown)]),
      lettersOf(id) === undefined ? undefined : el('p', {}, linkTo(runesWith(id), `Runes with ${id} in their names`)),
      el('p', {}, linkTo(runesWith(''), 'All runes')),
      ...elsewhere(runeView(id)),
    ].filter((node) => node !== undefined),
  };
}

/**
 * Finds similar names. First come the names of `names` with a word that begins with the letters. The other names are
 * sorted by wrong letters: names that begin with as many of the letters as possible, and names with few wrong letters.
 */
async function nearNames(letters: string, find: Source['find'], names: readonly RuneName[]): Promise<readonly FoundRune[]> {
  if (letters.length < 2) return [];
  let same: readonly FoundRune[] = [];
  for (let length = letters.length; length >= 2 && same.length === 0; length -= 1) same = await find(letters.slice(0, length));
  // The user may have swapped or doubled the first letters, or typed one too many.
  const [a, b, c = ''] = letters;
  const starts = [...new Set([`${a}${b}`, `${b}${a}`, `${a}${c}`, `${b}${c}`])].filter((start) => start.length === 2);
  const others = (await Promise.all(starts.map((start) => find(start)))).flat();
  const wrong = ([spacedName]: FoundRune) => distance(lettersOf(spacedName) ?? '', letters);
  const ranked = [...same, ...others.filter((rune) => wrong(rune) <= letters.length / 4)].sort((x, y) => wrong(x) - wrong(y));
  const words = names.filter(({ spaced_name }) => wordAt(spaced_name, letters) >= 0);
  const all = [...words.map((rune): FoundRune => [rune.spaced_name, rune.id, rune.number, rune.symbol]), ...ranked];
  return all.filter(([, id], i) => all.findIndex((rune) => rune[1] === id) === i).slice(0, 8);
}
