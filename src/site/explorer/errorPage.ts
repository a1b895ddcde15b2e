/** The view of a failed look-up: the mirror's error message and the next steps. */
import { MirrorError } from '../../serve/client/mirrorClient.ts';
import { el } from './dom.ts';
import { elsewhere, headOf, linkTo } from './parts.ts';
import { transactionOf, type View, viewAt } from './views.ts';

/** Renders an error. Adds a button that calls `retry` if another attempt may succeed, otherwise links to other pages. */
export function errorPage(error: unknown, view: View, retry: () => void): Node[] {
  const [title, text] = wordsOf(error);
  const alert = el('div', { class: 'error', role: 'alert' }, headOf(title), el('p', {}, text));
  if (isLasting(error)) {
    const next =
      view.kind === 'output'
        ? linkTo(transactionOf(view.id), 'Show its transaction')
        : linkTo(viewAt(view.kind, view.id), `Show the first records of the ${view.kind}`);
    return [alert, el('p', {}, next), ...elsewhere(view)];
  }
  const button = el('button', { type: 'button', 'data-step': 'retry' }, 'Try again');
  button.addEventListener('click', retry);
  return [alert, el('p', {}, button)];
}

/** True if the mirror would give the same answer again. */
const isLasting = (error: unknown): boolean => error instanceof MirrorError && (error.statusCode < 500 || error.statusCode === 501);

function wordsOf(error: unknown): readonly [title: string, text: string] {
  if (!isLasting(error) && !navigator.onLine)
    return ['No connection', 'This device is offline. The look-up is repeated when it is online again.'];
  if (error instanceof MirrorError) return [`${error.statusCode} ${error.error}`, error.message];
  return ['The mirror cannot be reached', error instanceof Error ? error.message : String(error)];
}
