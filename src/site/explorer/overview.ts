/** The overview: HTML of the build, which is replaced when the mirror has new data. */
import { byId } from './dom.ts';
import { isAnswered, onlyFiles, timeOf } from './parts.ts';

const overview = byId('overview');
let isComplete = false;

/** Shows relative times, and whether the host answers the example. Does nothing if the HTML is complete already. */
export async function completeOverview(): Promise<void> {
  if (isComplete) return;
  isComplete = true;
  for (const time of overview.querySelectorAll('time')) time.replaceWith(timeOf(Date.parse(time.dateTime) / 1000));
  const example = byId('example');
  if (!(await isAnswered(example.querySelector('code')?.textContent ?? ''))) example.replaceWith(onlyFiles());
}

/**
 * Fetches the page again. Resolves to its overview, or to undefined if the page that the host sends does not have the data of this `state`.
 * Rejects if it cannot be fetched.
 */
export async function fetchOverview(state: string): Promise<HTMLElement | undefined> {
  const response = await fetch(location.pathname, { cache: 'no-cache' });
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('overview');
  return fresh?.dataset['state'] === state ? fresh : undefined;
}

/** Replaces the overview. */
export async function showOverview(fresh: HTMLElement): Promise<void> {
  overview.replaceChildren(...fresh.childNodes);
  overview.dataset['state'] = fresh.dataset['state'];
  isComplete = false;
  if (!overview.hidden) await completeOverview();
}

const columnOf = ({ target }: Event): HTMLElement | null => (target instanceof HTMLElement ? target.closest<HTMLElement>('.plot a') : null);

// On a touch screen, columns may be narrower than a finger. So the first tap on a column only shows its text, and a tap on the text opens
// the block. The tap itself moves the focus, so the focus is looked at before.
let unread: HTMLElement | null = null;
overview.addEventListener('pointerdown', (event) => {
  const column = columnOf(event);
  unread = event.pointerType === 'touch' && document.activeElement !== column ? column : null;
});
overview.addEventListener('click', (event) => {
  const column = unread;
  unread = null;
  if (column === null || columnOf(event) !== column) return;
  event.preventDefault();
  column.focus({ preventScroll: true });
});

// In the chart, arrow keys move the focus from column to column.
overview.addEventListener('keydown', (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const link = columnOf(event);
  const links = [...(link?.parentElement?.querySelectorAll('a') ?? [])];
  const at = link === null ? -1 : links.findIndex((one) => one.isSameNode(link));
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: links.length - 1 }[event.key];
  const next = to === undefined ? undefined : links[to];
  if (link === null || next === undefined) return;
  event.preventDefault();
  link.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
