/** The page of a search in the names and symbols of all runes. */
import { lettersOf } from '../../lists/searchFiles.ts';
import type { RuneName } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { announce } from './parts.ts';
import { nameCell } from './runeCells.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { type Column, tableOf } from './tableOf.ts';
import type { SubjectView } from './views.ts';
import { wordAt } from './wordAt.ts';

const BYTES_OF_NAME = 20;
/** Maximum number of runes in the table. If more are found, the table has the oldest. */
const MOST = 240;

const COLUMNS: readonly Column<RuneName>[] = [
  { name: 'Rune', width: '34%', cell: nameCell },
  { name: 'Number', isNumber: true, cell: ({ number }) => [groupDigits(number)] },
];

/**
 * Returns a filter of runes. Letters must stand at the start of a word of the name. Other text must equal the symbol.
 */
function matcherOf(text: string): (rune: RuneName) => boolean {
  const letters = lettersOf(text);
  return letters === undefined ? ({ symbol }) => symbol === text : ({ spaced_name }) => wordAt(spaced_name, letters) >= 0;
}

export async function runeSearchPage({ id }: SubjectView, { manifest, names: { freeNames, readNames } }: Source): Promise<DetailsPage> {
  const title = `Runes with ${id}`;
  const head = el('div', { class: 'head' }, el('h1', { tabindex: '-1', class: 'name' }, 'Runes with ', el('bdi', {}, id)));
  if (manifest.lists?.etchings === undefined) {
    const text = 'This mirror does not have etchings, so it finds names only by their first letters.';
    return { title, said: title, nodes: [head, el('p', { class: 'note' }, text)] };
  }
  const { total } = manifest.lists.etchings;
  const place = el('div', {});
  const search = (names: readonly RuneName[]) => {
    const found = names.filter(matcherOf(id));
    const what = lettersOf(id) === undefined ? 'this symbol' : 'a word that begins like this';
    const shown = found.length > MOST ? ` These are the oldest ${MOST}.` : '';
    const text = `${groupDigits(found.length)} of ${count(names.length, 'rune')} ${found.length === 1 ? 'has' : 'have'} ${what}.${shown}`;
    const table = found.length === 0 ? [] : [tableOf('records runes-list', 'Runes, the oldest first', COLUMNS, [found.slice(0, MOST)])];
    place.replaceChildren(el('p', {}, text), ...table);
    return text;
  };
  const names = await freeNames();
  if (names !== undefined) return { title, said: search(names), nodes: [head, place] };
  const size = Math.ceil((total * BYTES_OF_NAME) / 1e6);
  const button = el('button', { type: 'button' }, `Read the names of all ${groupDigits(total)} runes: ${size} MB`);
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      announce(search(await readNames()));
    } catch {
      button.disabled = false;
      button.textContent = 'The names cannot be read: try again';
    }
  });
  place.replaceChildren(el('p', {}, button));
  return { title, said: title, nodes: [head, place] };
}
