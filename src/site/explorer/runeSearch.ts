/** The page of a search in the names and symbols of all runes. */
import { lettersOf } from '../../lists/searchFiles.ts';
import type { RuneName } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { announce } from './parts.ts';
import { nameCell } from './runeCells.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import { type Column, tableOf } from './table.ts';
import type { SubjectView } from './views.ts';

/** Up to this number of names, the page reads them without asking. A name takes about 20 bytes, so they have 80 KB. */
const FREE_NAMES = 4000;
const BYTES_OF_NAME = 20;
/** Maximum number of runes in the table. */
const MOST = 240;

/** Names of all runes, kept for the next search. A reload of the page reads them again. */
let known: readonly RuneName[] | undefined;

const COLUMNS: readonly Column<RuneName>[] = [
  { name: 'Rune', cell: nameCell },
  { name: 'Number', isNumber: true, cell: ({ number }) => [groupDigits(number)] },
];

/**
 * Returns a function that is true for the runes that a text finds. Letters find a name with a word that begins with
 * them; they may continue in the next words. Other text finds its symbol.
 */
function matcherOf(text: string): (rune: Pick<RuneName, 'spaced_name' | 'symbol'>) => boolean {
  const letters = lettersOf(text);
  if (letters === undefined) return ({ symbol }) => symbol === text;
  return ({ spaced_name }) => {
    const words = spaced_name.split('•');
    return words.some((_, i) => words.slice(i).join('').startsWith(letters));
  };
}

export async function runeSearchPage({ id }: SubjectView, { mirror, manifest, signal }: Source): Promise<DetailsPage> {
  const title = `Runes with ${id}`;
  const head = el('div', { class: 'head' }, el('h1', { tabindex: '-1', class: 'name' }, 'Runes with ', el('bdi', {}, id)));
  if (manifest.lists?.etchings === undefined) {
    const text = 'This mirror does not have etchings, so it finds names only by their first letters.';
    return { title, said: title, nodes: [head, el('p', { class: 'note' }, text)] };
  }
  const { total } = await mirror.etchings({ limit: 1, signal });
  const place = el('div', {});
  const search = async () => {
    if (known === undefined || known.length < total) {
      const names: RuneName[] = [];
      for await (const rune of mirror.runes({ signal })) names.push(rune);
      known = names;
    }
    const found = known.filter(matcherOf(id));
    const what = lettersOf(id) === undefined ? 'this symbol' : 'a word that begins like this';
    const shown = found.length > MOST ? ` These are the oldest ${MOST}.` : '';
    const text = `${groupDigits(found.length)} of ${count(known.length, 'rune')} ${found.length === 1 ? 'has' : 'have'} ${what}.${shown}`;
    const table = found.length === 0 ? [] : [tableOf('runes-list', 'Runes, the oldest first', COLUMNS, [found.slice(0, MOST)])];
    place.replaceChildren(el('p', {}, text), ...table);
    return text;
  };
  if (known !== undefined || total <= FREE_NAMES) return { title, said: await search(), nodes: [head, place] };
  const size = Math.ceil((total * BYTES_OF_NAME) / 1e6);
  const button = el('button', { type: 'button' }, `Read the names of all ${groupDigits(total)} runes: ${size} MB`);
  button.addEventListener('click', async () => {
    button.disabled = true;
    await search().then(announce, () => {
      button.disabled = false;
      button.textContent = 'The names cannot be read: try again';
    });
  });
  place.replaceChildren(el('p', {}, button));
  return { title, said: title, nodes: [head, place] };
}
