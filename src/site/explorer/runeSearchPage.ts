/** The page of a search: the runes whose names begin with the typed letters. */
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { formatHeights, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import type { Page, Source } from './lists.ts';
import { elsewhere, headOf, linkTo, nameCell } from './parts.ts';
import { type Column, numbersOf, tableOf } from './tableOf.ts';
import { type View, viewAt } from './views.ts';

const COLUMNS: readonly Column<FoundRune>[] = [
  {
    name: 'Rune',
    cell: ([spaced_name, id, number, symbol]) => nameCell({ id, number, spaced_name, name: spaced_name.replaceAll('•', ''), symbol }),
  },
  numbersOf('Number', ([, , number]) => number),
];

/**
 * Finds the runes whose names begin with the letters, or with as many of them as possible, but at least two. Also is the page of a rune
 * that the mirror does not have.
 */
export async function runeSearchPage(view: View, { findByLetters, manifest }: Source): Promise<Page> {
  const { kind, id } = view;
  let letters = lettersOf(id) ?? '';
  let found = letters === '' ? [] : await findByLetters(letters);
  while (found.length === 0 && letters.length > 2) {
    letters = letters.slice(0, -1);
    found = await findByLetters(letters);
  }
  const isName = kind === 'runes' || letters !== '';
  const said =
    found.length === 0
      ? 'No name of a rune begins like this.'
      : `The oldest runes whose names begin with ${letters}: ${groupDigits(found.length)}.`;
  const unknown = [
    el('p', {}, 'This mirror has no rune ', el('code', { class: 'whole' }, id), '.'),
    el('p', { class: 'quiet' }, `It knows blocks ${formatHeights(manifest.heights)}.`),
  ];
  return {
    title: isName ? `Runes with ${id}` : `Rune ${id}`,
    said,
    nodes: [
      headOf(isName ? ['Runes with ', el('bdi', {}, id)] : 'No such rune'),
      ...(kind === 'rune' ? unknown : []),
      ...(isName ? [el('p', {}, said)] : []),
      ...(found.length === 0 ? [] : [tableOf('records runes-list', 'Runes, the oldest first', COLUMNS, [found])]),
      el('p', {}, linkTo(viewAt('runes', ''), 'All runes')),
      ...elsewhere(view),
    ],
  };
}
