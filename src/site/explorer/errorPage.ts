/**
 * A look-up that failed: what the mirror said, in its own words, and a way to try again.
 */
import { MirrorError } from '../../client/index.ts';
import { el } from './dom.ts';

/** The view of an error. `retry` is called when its button is pressed. */
export function errorPage(error: unknown, retry: () => void): Node[] {
  const button = el('button', { type: 'button', 'data-step': 'retry' }, 'Try again');
  button.addEventListener('click', retry);
  const [title, text] = wordsOf(error);
  return [
    el('div', { class: 'error', role: 'alert' }, el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, title)), el('p', {}, text)),
    el('p', {}, button),
  ];
}

function wordsOf(error: unknown): readonly [title: string, text: string] {
  const isRefusal = error instanceof MirrorError && error.statusCode < 500;
  if (!isRefusal && !navigator.onLine) return ['No connection', 'This device is offline. The look-up is made again when it is back.'];
  if (error instanceof MirrorError) return [`${error.statusCode} ${error.error}`, error.message];
  return ['The mirror cannot be reached', error instanceof Error ? error.message : String(error)];
}
