/** Main script of the explorer: shows the view of the page's URL, and changes the URL on look-ups and clicks. */
import { isHeight } from '../../pages/parseIds.ts';
import { MirrorError } from '../../serve/client/mirrorClient.ts';
import { groupDigits, shorten } from '../formatValues.ts';
import { byId, el } from './dom.ts';
import { completeOverview, followMirror } from './overview.ts';
import { announce, capital, elsewhere, headOf, linkTo } from './parts.ts';
import { isMisread, type Misread, readLookUp, viewOf, wrongAddress } from './readLookUp.ts';
import { fetchBlockStats, fetchStats, findByLetters, mirror } from './requestMirror.ts';
import { suggestFor } from './suggestions.ts';
import { LATEST, searchOf, transactionOf, type View, viewAt } from './views.ts';

const SITE = document.title;
const overview = byId('overview');
const stage = byId('view');
const field = byId('query') as HTMLInputElement;
const problem = byId('query-problem');

/** Aborts the previous look-up, so that its late answer cannot replace a newer view. */
let waiting = new AbortController();

/** `data-step` of the button that repeats a failed look-up. Other steps are links to another part of the shown list. */
const RETRY = 'retry';

/** Shows the view of the current URL. `from` is the `data-step` of the clicked button or link. */
async function show(from?: string): Promise<void> {
  waiting.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  const view = viewOf(location.search);
  say(undefined);
  overview.hidden = view.kind !== 'overview';
  stage.hidden = view.kind === 'overview';
  if (view.kind === 'overview') {
    document.title = SITE;
    stage.removeAttribute('aria-busy');
    stage.replaceChildren();
    field.value = '';
    return completeOverview();
  }
  if (view.kind === 'problem') {
    document.title = `Not an id · ${SITE}`;
    field.value = view.text;
    return put(misreadPage(view.said), from);
  }
  document.title = `${titleOf(view)} · ${SITE}`;
  field.value = view.id;
  const wrong = view.kind === 'address' ? wrongAddress(view.id) : undefined;
  say(wrong && { problem: wrong.problem });
  stage.setAttribute('aria-busy', 'true');
  if (stage.childElementCount === 0) stage.replaceChildren(el('p', { class: 'waiting' }, 'Looking it up…'));
  try {
    put(await nodesOf(view, signal), from);
  } catch (error) {
    const retry = () => void show(RETRY);
    if (!signal.aborted) put(errorPage(error, view, retry), from);
  }
}

async function nodesOf(view: View, signal: AbortSignal): Promise<readonly Node[]> {
  const isList = view.kind === 'block' || view.kind === 'transaction';
  // Names the bundles in the output (`.js`), because esbuild leaves these imports unchanged (src/site/assets.ts).
  const loading = isList ? import('./listPage.js') : import('./details.js');
  // If the host cannot be reached, both fail. Then the error of the mirror is shown, because it says more.
  loading.catch(() => undefined);
  const manifest = await mirror.manifest();
  const { pageOf } = await loading;
  const { title, said, nodes } = await pageOf(view, { mirror, fetchStats, fetchBlockStats, findByLetters, manifest, signal });
  // Not all requests can be aborted, so another view may be open by now.
  signal.throwIfAborted();
  document.title = `${title} · ${SITE}`;
  announce(said);
  return nodes;
}

/**
 * Shows new data in the current view, unless it is a later page of a list. Leaves the overview to the caller. Resolves to false if somebody
 * uses the view: selects text, downloads a list, or has the focus on a link that the new data may not have.
 */
async function refresh(): Promise<boolean> {
  const view = viewOf(location.search);
  if (view.kind === 'problem' || (view.kind !== 'overview' && view.offset > 0)) return true;
  const focused = document.querySelector<HTMLElement>(view.kind === 'overview' ? '#overview :focus' : '#view :focus');
  const step = focused?.dataset['step'];
  const isKept = focused === null || focused.tagName === 'H1' || step !== undefined;
  if (!isKept || getSelection()?.isCollapsed === false || stage.matches('[aria-busy]') || stage.querySelector(':disabled') !== null)
    return false;
  if (view.kind === 'overview') return true;
  const nodes = await nodesOf(view, waiting.signal);
  // A download may have begun meanwhile.
  if (stage.querySelector(':disabled') !== null) return false;
  put(nodes, undefined);
  if (focused !== null) targetOf(step)?.focus({ preventScroll: true });
  return true;
}

/** Returns the title of a page that has not loaded. */
const titleOf = ({ kind, id }: View): string => {
  if (id === LATEST) return 'Latest block';
  return `${capital(kind)} ${kind === 'block' && isHeight(id) ? groupDigits(id) : shorten(id)}`.trim();
};

const misreadPage = ({ problem: text, instead }: Misread): Node[] => [
  headOf('Not an id'),
  el('p', {}, text),
  el('p', {}, instead === undefined ? el('a', { href: './' }, 'Show the newest blocks') : linkTo(instead.view, instead.label)),
];

/** Renders an error. Adds a button that calls `retry` if another attempt may succeed, otherwise links to other pages. */
function errorPage(error: unknown, view: View, retry: () => void): Node[] {
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

/** Finds the element with a `data-step`. Without one, finds the heading. */
const targetOf = (step: string | undefined): HTMLElement | null =>
  stage.querySelector(step === undefined || step === '' ? 'h1' : `[data-step="${CSS.escape(step)}"]`);

/** Shows a view. Moves the focus to the same paging link as before, otherwise to the heading. */
function put(nodes: readonly Node[], from: string | undefined): void {
  stage.removeAttribute('aria-busy');
  stage.replaceChildren(...nodes);
  if (from === undefined) return;
  const target = targetOf(from) ?? targetOf('');
  target?.focus({ preventScroll: true });
  // The beginning of a list must be in the upper half of the screen.
  const list = from === '' || from === RETRY ? null : stage.querySelector('.chips');
  const { top } = (list ?? stage).getBoundingClientRect();
  if (list !== null && (top < 0 || top > innerHeight / 2)) list.scrollIntoView({ block: 'start' });
  if (target?.dataset['step'] === undefined) stage.scrollIntoView({ block: 'nearest' });
}

function go(search: string, from = ''): void {
  history.pushState(null, '', search === '' ? location.pathname : search);
  if (from === '') scrollTo(0, 0);
  void show(from);
}

/** Shows or clears the problem below the search field. */
function say(misread: Misread | undefined): void {
  field.setAttribute('aria-invalid', misread === undefined ? 'false' : 'true');
  const instead = misread?.instead;
  problem.replaceChildren(
    ...(misread === undefined ? [] : [misread.problem, ' ']),
    ...(instead === undefined ? [] : [linkTo(instead.view, instead.label)]),
  );
}

const closeSuggestions = suggestFor(field, go);

byId('look-up').addEventListener('submit', (event) => {
  event.preventDefault();
  closeSuggestions();
  const read = readLookUp(field.value);
  if (!isMisread(read)) return go(searchOf(read));
  say(read);
  field.focus();
});

field.addEventListener('input', () => say(undefined));

document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.closest('input, textarea, select') !== null;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  // The links to the previous and the next block have the arrow keys as shortcuts.
  const shortcut = event.shiftKey ? null : stage.querySelector<HTMLElement>(`a[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
  shortcut?.click();
  if (event.key !== '/') return;
  event.preventDefault();
  field.focus();
  field.select();
});

document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
    return;
  const isOwn = link.hash === '' && link.origin === location.origin && link.pathname === location.pathname;
  if (!isOwn) return;
  event.preventDefault();
  go(link.search, link.dataset['step']);
});

addEventListener('popstate', () => void show());
addEventListener('online', () => {
  if (stage.querySelector('.error') !== null) void show();
});
followMirror(refresh);

void show();
