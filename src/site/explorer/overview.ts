/** The overview: HTML of the build, which is replaced when the mirror has new data. */
import { groupDigits } from '../formatValues.ts';
import { byId } from './dom.ts';
import { announce, isAnswered, onlyFiles, timeOf } from './parts.ts';
import { forgetSearchFiles, mirror } from './requestMirror.ts';

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

/** Fetches the overview again. Undefined if the page that the host sends does not have the data of this `state`. */
async function fetchOverview(state: string): Promise<HTMLElement | undefined> {
  const response = await fetch(location.pathname, { cache: 'no-cache' });
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('overview');
  return fresh?.dataset['state'] === state ? fresh : undefined;
}

async function showOverview(fresh: HTMLElement): Promise<void> {
  overview.replaceChildren(...fresh.childNodes);
  overview.dataset['state'] = fresh.dataset['state'];
  isComplete = false;
  if (!overview.hidden) await completeOverview();
}

/** Time between two requests for the manifest. Without new data, the answer is a 304 without a body. */
const INTERVAL_MS = 30_000;

/**
 * Requests the manifest periodically, as long as the page is visible. If the mirror has new data, calls `refresh` to show the new data, and
 * renews the overview. If `refresh` resolves to false or rejects, calls it again after the next request. The overview follows later than
 * other views if the host sends an old page meanwhile.
 */
export function followMirror(refresh: () => Promise<boolean>): void {
  let shown = overview.dataset['state'];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    if (document.hidden) return;
    try {
      const { digest, tip } = await mirror.manifest();
      const hash = tip?.hash ?? '';
      const state = `${digest} ${hash}`;
      if (state !== shown) forgetSearchFiles();
      // Fetches the overview before `refresh` looks whether somebody uses the page, because this may change meanwhile.
      const fresh = state === overview.dataset['state'] ? undefined : await fetchOverview(state);
      const isNews = overview.hidden ? state !== shown : fresh !== undefined;
      if (isNews ? await refresh() : fresh !== undefined) {
        if (!shown?.endsWith(` ${hash}`)) announce(`New block ${groupDigits(tip?.height ?? 0)}`);
        shown = state;
        if (fresh !== undefined) await showOverview(fresh);
      }
    } catch {
      // The mirror may be unreachable, or its files are being replaced. The next request tries again.
    }
    clearTimeout(timer);
    timer = setTimeout(look, INTERVAL_MS);
  };
  document.addEventListener('visibilitychange', look);
  timer = setTimeout(look, INTERVAL_MS);
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
