/** Suggestions below the search field during typing: the keyboard pattern of an editable combobox with a list. */
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { count, groupDigits, shorten } from '../formatValues.ts';
import { type Child, el } from './dom.ts';
import { announce, breakable, kindName } from './parts.ts';
import { isMisread, readLookUp } from './readLookUp.ts';
import { LATEST, type View, viewAt } from './views.ts';

/** Maximum number of suggested runes. */
const MOST = 8;
/** Minimum number of typed letters for suggestions of runes. */
const LEAST_LETTERS = 2;

interface Suggestion {
  readonly view: View;
  readonly children: readonly Child[];
}

const suggestion = (view: View, what: string, id: string, note = ''): Suggestion => ({
  view,
  children: [el('span', { class: 'what' }, what), el('span', { class: 'found' }, id), el('span', { class: 'quiet' }, note)],
});

/** Returns possible meanings of a text, without a request to the mirror. */
function exactHits(text: string): Suggestion[] {
  const letters = lettersOf(text);
  if (letters !== undefined && letters.length >= LEAST_LETTERS && LATEST.toUpperCase().startsWith(letters))
    return [suggestion(viewAt('block', LATEST), 'Block', 'latest', 'the highest of this mirror')];
  const read = text.trim() === '' ? undefined : readLookUp(text);
  if (read === undefined || isMisread(read) || (letters !== undefined && read.kind === 'rune')) return [];
  if (read.kind === 'block' && /^[0-9]+$/.test(read.id))
    return [
      suggestion(read, 'Block', groupDigits(read.id), 'height'),
      ...(read.id.length <= 15 ? [suggestion(viewAt('rune', read.id), 'Rune', groupDigits(read.id), 'number')] : []),
    ];
  return [suggestion(read, kindName(read.kind), read.kind === 'rune' ? read.id : shorten(read.id, 10))];
}

/** Renders a rune, with the typed letters in bold. */
function runeHit([spacedName, id, number, symbol]: FoundRune, letters: string): Suggestion {
  let [end, left] = [0, letters.length];
  for (; end < spacedName.length && left > 0; end += 1) if (spacedName[end] !== '•') left -= 1;
  return {
    view: viewAt('rune', lettersOf(spacedName) ?? id),
    children: [
      el('bdi', { class: 'what', 'aria-hidden': 'true' }, symbol ?? ''),
      el('span', { class: 'found' }, el('b', {}, ...breakable(spacedName.slice(0, end))), ...breakable(spacedName.slice(end))),
      el('span', { class: 'quiet' }, `#${groupDigits(number)} `, el('code', {}, id)),
    ],
  };
}

/**
 * Shows suggestions for a field in a list. `find` finds runes by the first letters of their names, in upper case; if it
 * rejects, none are suggested. `choose` shows the view of a chosen suggestion. Returns a function that closes the list.
 */
export function suggestFor(
  field: HTMLInputElement,
  list: HTMLElement,
  find: (letters: string) => Promise<readonly FoundRune[]>,
  choose: (view: View) => void,
): () => void {
  let shown: readonly Suggestion[] = [];
  let active = -1;

  const mark = (index: number) => {
    active = index;
    for (const [i, option] of [...list.children].entries()) option.setAttribute('aria-selected', String(i === index));
    const option = list.children[index];
    if (option === undefined) field.removeAttribute('aria-activedescendant');
    else {
      field.setAttribute('aria-activedescendant', option.id);
      option.scrollIntoView({ block: 'nearest' });
    }
  };

  const show = (suggestions: readonly Suggestion[]) => {
    shown = suggestions;
    list.replaceChildren(
      ...suggestions.map(({ children }, i) => el('li', { role: 'option', id: `suggestion-${i}`, 'aria-selected': 'false' }, ...children)),
    );
    list.hidden = suggestions.length === 0;
    field.setAttribute('aria-expanded', String(!list.hidden));
    mark(-1);
  };
  const close = () => show([]);

  const update = async () => {
    const text = field.value;
    const hits = exactHits(text);
    const letters = lettersOf(text);
    if (letters === undefined || letters.length < LEAST_LETTERS) return show(hits);
    const found = await find(letters).catch((): readonly FoundRune[] => []);
    // Ignores a result if the field has changed or lost the focus.
    if (field.value !== text || document.activeElement !== field) return;
    const exact = found.filter(([spacedName]) => lettersOf(spacedName) === letters);
    const runes = [...exact, ...found.slice(0, MOST).filter((rune) => !exact.includes(rune))].slice(0, MOST);
    const all = found.length > runes.length ? [suggestion(viewAt('runes', letters), 'Runes', letters, 'and more like it')] : [];
    show([...runes.map((rune) => runeHit(rune, letters)), ...hits, ...all]);
    announce(count(shown.length, 'suggestion'));
  };

  const chosen = (index: number) => {
    const view = shown[index]?.view;
    close();
    if (view !== undefined) choose(view);
  };

  field.addEventListener('input', () => void update());
  field.addEventListener('blur', close);
  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      // The arrow keys go through all suggestions, and one more position without a selection.
      const places = shown.length + 1;
      if (shown.length === 0) void update();
      else mark(((active + 1 + step + places) % places) - 1);
    } else if (event.key === 'Escape') {
      if (shown.length === 0) field.value = '';
      close();
    } else if (event.key === 'Enter' && active >= 0) {
      event.preventDefault();
      chosen(active);
    }
  });
  // Keeps the focus in the field while an option is pressed.
  list.addEventListener('pointerdown', (event) => event.preventDefault());
  list.addEventListener('click', (event) => {
    const option = event.target instanceof Element ? event.target.closest('li') : null;
    if (option !== null) chosen([...list.children].indexOf(option));
  });
  return close;
}
