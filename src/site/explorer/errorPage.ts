/**
 * The view of a failed look-up: the mirror's error message and a button to try again.
 */
import { MirrorError } from '../../client/index.ts';
import { el } from './dom.ts';

/** Renders an error. The button calls `retry`. */
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
  if (!isRefusal && !navigator.onLine) return ['No connection', 'This device is offline. The look-up is repeated when it is online again.'];
  if (error instanceof MirrorError) return [`${error.statusCode} ${error.error}`, error.message];
  return ['The mirror cannot be reached', error instanceof Error ? error.message : String(error)];
}
