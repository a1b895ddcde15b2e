/** Main script of the explorer: shows the view of the page's URL, and changes the URL on look-ups and clicks. */

import { lettersOf } from '../../lists/searchFiles.ts';
import { isHeight } from '../../pages/parseIds.ts';
import type { Activity } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits, shorten } from '../formatValues.ts';
import { byId, el } from './dom.ts';
import { errorPage } from './errorPage.ts';
import { followMirror } from './followMirror.ts';
import { neighboursOf } from './neighbourBlocks.ts';
import { completeOverview } from './overview.ts';
import { rangeOf } from './paging.ts';
import { announce, kindName, linkTo } from './parts.ts';
import { isMisread, type Misread, readLookUp, viewOf, wrongAddress } from './readLookUp.ts';
import { fetchBlockStats, fetchList, fetchStats, findByLetters, mirror } from './requestMirror.ts';
import { suggestFor } from './suggestions.ts';
import { type FoundView, LATEST, type ListView, runesWith, SUBJECT_LISTS, type SubjectView, searchOf } from './views.ts';

const SITE = document.title;
const overview = byId('overview');
const stage = byId('view');
const field = byId('query') as HTMLInputElement;
const problem = byId('query-problem');

/** Aborts the previous look-up, so that its late answer cannot replace a newer view. */
let waiting = new AbortController();

/**
 * Shows the view of the current URL. `from` is the `data-step` of the clicked button or link. `isSameList` is true for
 * another page or list of the same block, transaction, rune or address.
 */
async function show(from?: string, isSameList = false): Promise<void> {
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
    const nodes = await nodesOf(view, signal);
    if (!signal.aborted) put(nodes, from, isSameList);
  } catch (error) {
    const retry = () => void show('retry');
    if (!signal.aborted) put(errorPage(error, view, retry), from);
  }
}

const nodesOf = (view: FoundView, signal: AbortSignal): Promise<readonly Node[]> =>
  isSubject(view) ? subjectPage(view, signal) : pageOf(view, signal);

/**
 * Shows new data in the current view, unless it is a later page of a list. Leaves the overview to the caller. Resolves
 * to false if somebody uses the view: selects text, downloads a list, or has the focus on a link that the new data may
 * not have.
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
  const { signal } = waiting;
  const nodes = await nodesOf(view, signal);
  // A download may have begun meanwhile.
  if (signal.aborted || stage.querySelector(':disabled') !== null) return false;
  put(nodes, undefined);
  if (focused !== null)
    stage.querySelector<HTMLElement>(step === undefined ? 'h1' : `[data-step="${CSS.escape(step)}"]`)?.focus({ preventScroll: true });
  return true;
}

/** Returns the name of a view for the page title. A block is named by its height if one of its records is known. */
function nameOf(view: ListView, known?: Activity): string {
  if (view.kind === 'transaction') return `Transaction ${shorten(view.id)}`;
  const height = known?.location.block_height ?? (isHeight(view.id) ? view.id : undefined);
  return `Block ${height === undefined ? shorten(view.id) : groupDigits(height)}`;
}

const isSubject = (view: FoundView): view is SubjectView => view.kind in SUBJECT_LISTS;
const titleOf = (view: FoundView): string =>
  isSubject(view) ? `${kindName(view)} ${shorten(view.id)}`.trim() : view.id === LATEST ? 'Latest block' : nameOf(view);

/** Fetches and renders the page of a rune, an address, an output or all runes. Rejects with the client's errors. */
async function subjectPage(view: SubjectView, signal: AbortSignal): Promise<readonly Node[]> {
  // Names the bundle in the output (`.js`), because esbuild leaves this import unchanged (src/site/assets.ts).
  const [{ detailsPage }, manifest] = await Promise.all([import('./details.js'), mirror.manifest()]);
  const { title, said, nodes } = await detailsPage(view, {
    mirror,
    manifest,
    find: findByLetters,
    stats: fetchStats,
    signal,
  });
  signal.throwIfAborted();
  document.title = `${title} · ${SITE}`;
  announce(said);
  return nodes;
}

/** Fetches and renders a list. Rejects with the client's errors. */
async function pageOf(asked: ListView, signal: AbortSignal): Promise<Node[]> {
  const latest = asked.id === LATEST ? (await mirror.manifest()).heights.at(-1)?.[1] : undefined;
  const view = latest === undefined ? asked : { ...asked, id: String(latest) };
  const [result, manifest, { listPage, unknownPage }] = await Promise.all([
    fetchList(view, signal),
    mirror.manifest(),
    import('./listPage.js'),
  ]);
  // The request for the manifest cannot be aborted, so another view may be open by now.
  signal.throwIfAborted();
  let [known] = result.results;
  if (known === undefined && (view.operation !== undefined || view.offset > 0)) {
    // The window is empty, but the list may have records. Fetches a record for the heading.
    [known] = (await fetchList({ kind: view.kind, id: view.id, offset: 0 }, signal)).results;
  }
  if (known === undefined) {
    announce('Nothing here');
    return unknownPage(view, manifest);
  }
  const requests = { mirror, fetchList, fetchBlockStats, signal };
  const nodes = await listPage(view, result, known, neighboursOf(known.location.block_height, manifest.heights), requests);
  signal.throwIfAborted();
  document.title = `${nameOf(view, known)} · ${SITE}`;
  announce(result.results.length > 0 ? `Records ${rangeOf(result)}` : count(result.total, 'record'));
  return nodes;
}

const misreadPage = ({ problem: text, instead }: Misread): Node[] => [
  el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Not an id')),
  el('p', {}, text),
  el('p', {}, instead === undefined ? el('a', { href: './' }, 'Show the newest blocks') : linkTo(instead.view, instead.label)),
];

/** Shows a view. Moves the focus to the same paging link as before, otherwise to the heading. */
function put(nodes: readonly Node[], from: string | undefined, isSameList = false): void {
  stage.removeAttribute('aria-busy');
  stage.replaceChildren(...nodes);
  if (from === undefined) return;
  const same = from === '' ? null : stage.querySelector<HTMLElement>(`[data-step="${CSS.escape(from)}"]`);
  const target = same ?? stage.querySelector<HTMLElement>('h1');
  target?.focus({ preventScroll: true });
  // The beginning of a list must be in the upper half of the screen.
  const list = isSameList ? stage.querySelector('.chips') : null;
  const { top } = (list ?? stage).getBoundingClientRect();
  if (list !== null && (top < 0 || top > innerHeight / 2)) list.scrollIntoView({ block: 'start' });
  if (same === null) stage.scrollIntoView({ block: 'nearest' });
}

/** Shows the view of a query string. `from` is the `data-step` of the clicked link. */
function go(search: string, from = ''): void {
  const [before, after] = [viewOf(location.search), viewOf(search)];
  const isSameList = from !== '' && 'id' in before && 'id' in after && before.kind === after.kind && before.id === after.id;
  history.pushState(null, '', search === '' ? location.pathname : search);
  if (!isSameList) scrollTo(0, 0);
  void show(from, isSameList);
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

const closeSuggestions = suggestFor(field, byId('suggestions'), findByLetters, (view) => go(searchOf(view)));

byId('look-up').addEventListener('submit', (event) => {
  event.preventDefault();
  closeSuggestions();
  const read = readLookUp(field.value);
  if (isMisread(read)) {
    say(read);
    field.focus();
    return;
  }
  // Another look-up or view replaces this one.
  waiting.abort();
  waiting = new AbortController();
  const { signal } = waiting;
  stage.setAttribute('aria-busy', 'true');
  void nearest(read).then((view) => {
    if (!signal.aborted) go(searchOf(view));
  });
});

/** Returns a view, or the runes whose names begin like this if no rune has exactly this name. */
async function nearest(read: FoundView): Promise<FoundView> {
  const letters = read.kind === 'rune' ? lettersOf(read.id) : undefined;
  if (letters === undefined) return read;
  const found = await findByLetters(letters).catch(() => []);
  return found.length === 0 || found.some(([spacedName]) => lettersOf(spacedName) === letters) ? read : runesWith(letters);
}

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
