/** The overview: HTML of the build, which is replaced when the mirror has new data. */
import { isAnswered } from './apiHost.ts';
import { byId } from './dom.ts';
import { onlyFiles, timeOf } from './parts.ts';

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
 * Fetches the page again, and shows its overview. Resolves to false if the page that the host sends does not have the
 * data of this `state`. Rejects if it cannot be fetched.
 */
export async function renewOverview(state: string): Promise<boolean> {
  const response = await fetch(location.pathname, { cache: 'no-cache' });
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('overview');
  if (fresh?.dataset['state'] !== state) return false;
  overview.replaceChildren(...fresh.childNodes);
  isComplete = false;
  if (!overview.hidden) await completeOverview();
  return true;
}

// In the chart, arrow keys move the focus from column to column.
overview.addEventListener('keydown', (event) => {
  const link = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('.plot a') : null;
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
