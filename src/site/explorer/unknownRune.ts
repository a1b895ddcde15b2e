/** The page of a rune that the mirror does not have: runes with similar names. */

import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { formatHeights } from '../formatValues.ts';
import { el } from './dom.ts';
import { breakable, elsewhere, linkTo } from './parts.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { runesWith, runeView } from './views.ts';

/** Maximum number of similar names. */
const MOST = 8;

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
    ],
  };
}

/** Finds the runes whose names begin with as many of the letters as possible, but at least two. */
async function nearNames(letters: string, find: Source['find']): Promise<readonly FoundRune[]> {
  let found: readonly FoundRune[] = [];
  for (let { length } = letters; length >= 2 && found.length === 0; length -= 1) found = await find(letters.slice(0, length));
  return found.slice(0, MOST);
}
