/** The page of a search: the runes whose names begin with the typed letters. */
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { nameCell } from './runeCells.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { type Column, tableOf } from './tableOf.ts';
import type { SubjectView } from './views.ts';

const COLUMNS: readonly Column<FoundRune>[] = [
  {
    name: 'Rune',
    cell: ([spaced_name, id, number, symbol]) =>
      nameCell({ id, number, spaced_name, name: spaced_name.replaceAll('•', ''), ...(symbol === undefined ? {} : { symbol }) }),
  },
  { name: 'Number', isNumber: true, cell: ([, , number]) => [groupDigits(number)] },
];

export async function runeSearchPage({ id }: SubjectView, { find }: Source): Promise<DetailsPage> {
  const title = `Runes with ${id}`;
  const letters = lettersOf(id);
  const found = letters === undefined ? [] : await find(letters);
  const said =
    found.length === 0
      ? 'No name of a rune begins like this.'
      : `The oldest runes whose names begin like this: ${groupDigits(found.length)}.`;
  const head = el('div', { class: 'head' }, el('h1', { tabindex: '-1', class: 'name' }, 'Runes with ', el('bdi', {}, id)));
  const table = found.length === 0 ? [] : [tableOf('records runes-list', 'Runes, the oldest first', COLUMNS, [found])];
  return { title, said, nodes: [head, el('p', {}, said), ...table] };
}
