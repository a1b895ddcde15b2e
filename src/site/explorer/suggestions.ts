/** Suggestions below the search field during typing: the keyboard pattern of an editable combobox with a list. */
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { count, groupDigits, shorten } from '../formatValues.ts';
import { byId, type Child, el } from './dom.ts';
import { announce, breakable, capital } from './parts.ts';
import { isMisread, readLookUp } from './readLookUp.ts';
import { findByLetters } from './requestMirror.ts';
import { LATEST, searchOf, type View, viewAt } from './views.ts';

/** Maximum number of suggested runes. */
const MOST = 8;
/** Minimum number of typed letters for suggestions of runes. */
const LEAST_LETTERS = 2;

const option = (view: View, ...children: readonly Child[]): HTMLElement =>
  el('li', { role: 'option', 'data-search': searchOf(view) }, ...children);

const suggestion = (view: View, what: string, id: string, note = ''): HTMLElement =>
  option(view, el('span', { class: 'what' }, what), el('span', { class: 'found' }, id), el('span', { class: 'quiet' }, note));

/** Returns possible meanings of a text, without a request to the mirror. */
function exactHits(text: string, letters: string | undefined): HTMLElement[] {
  if (letters !== undefined && letters.length >= LEAST_LETTERS && LATEST.toUpperCase().startsWith(letters))
    return [suggestion(viewAt('block', LATEST), 'Block', 'latest', 'the highest of this mirror')];
  const read = readLookUp(text);
  if (isMisread(read) || (letters !== undefined && read.kind === 'rune')) return [];
  if (read.kind === 'block' && /^[0-9]+$/.test(read.id))
    return [
      suggestion(read, 'Block', groupDigits(read.id), 'height'),
      ...(read.id.length <= 15 ? [suggestion(viewAt('rune', read.id), 'Rune', groupDigits(read.id), 'number')] : []),
    ];
  return [suggestion(read, capital(read.kind), read.kind === 'rune' ? read.id : shorten(read.id, 10))];
}

function runeHit([spacedName, id, number, symbol]: FoundRune, letters: string): HTMLElement {
  const [typed = ''] = new RegExp(`^•*${[...letters].join('•*')}`).exec(spacedName) ?? [];
  return option(
    viewAt('rune', lettersOf(spacedName) ?? id),
    el('bdi', { class: 'what', 'aria-hidden': 'true' }, symbol ?? ''),
    el('span', { class: 'found' }, el('b', {}, ...breakable(typed)), ...breakable(spacedName.slice(typed.length))),
    el('span', { class: 'quiet' }, `#${groupDigits(number)} `, el('code', {}, id)),
  );
}

/** Returns suggestions for a text. Suggests no runes if the mirror cannot be read. */
async function suggestionsFor(text: string): Promise<HTMLElement[]> {
  const letters = lettersOf(text);
  const hits = exactHits(text, letters);
  if (letters === undefined || letters.length < LEAST_LETTERS) return hits;
  const found = await findByLetters(letters).catch((): readonly FoundRune[] => []);
  const exact = found.filter(([spacedName]) => lettersOf(spacedName) === letters);
  const runes = [...new Set([...exact, ...found.slice(0, MOST)])].slice(0, MOST);
  const all = found.length > runes.length ? [suggestion(viewAt('runes', letters), 'Runes', letters, 'and more like it')] : [];
  return [...runes.map((rune) => runeHit(rune, letters)), ...hits, ...all];
}

/** Shows suggestions for a field. `choose` shows the view of a query string. Returns a function that closes the list. */
export function suggestFor(field: HTMLInputElement, choose: (search: string) => void): () => void {
  const list = byId('suggestions');
  let active = -1;

  const mark = (index: number) => {
    active = index;
    for (const [i, option] of [...list.children].entries()) option.setAttribute('aria-selected', String(i === index));
    const option = list.children[index];
    if (option === undefined) return field.removeAttribute('aria-activedescendant');
    field.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  };

  const show = (options: readonly HTMLElement[]) => {
    for (const [i, option] of options.entries()) option.id = `suggestion-${i}`;
    list.replaceChildren(...options);
    list.hidden = options.length === 0;
    field.setAttribute('aria-expanded', String(!list.hidden));
    mark(-1);
  };
  const close = () => show([]);

  const update = async () => {
    const text = field.value;
    const options = await suggestionsFor(text);
    // Ignores a result if the field has changed or lost the focus.
    if (field.value !== text || document.activeElement !== field) return;
    show(options);
    if (text !== '') announce(count(options.length, 'suggestion'));
  };

  const chosen = (option: Element | null | undefined) => {
    const search = option?.getAttribute('data-search');
    close();
    if (search != null) choose(search);
  };

  field.addEventListener('input', () => void update());
  field.addEventListener('blur', close);
  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const length = list.childElementCount;
    if (step !== 0) {
      event.preventDefault();
      // The arrow keys go through all suggestions, and one more position without a selection.
      if (length === 0) void update();
      else mark(((active + 1 + step + length + 1) % (length + 1)) - 1);
    } else if (event.key === 'Escape') {
      if (length === 0) field.value = '';
      close();
    } else if (event.key === 'Enter' && active >= 0) {
      event.preventDefault();
      chosen(list.children[active]);
    }
  });
  // Keeps the focus in the field while an option is pressed.
  list.addEventListener('pointerdown', (event) => event.preventDefault());
  list.addEventListener('click', (event) => chosen(event.target instanceof Element ? event.target.closest('li') : null));
  return close;
}
