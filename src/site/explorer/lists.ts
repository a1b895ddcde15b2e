/** The lists of a page: tabs, pages, the request of a list and its download. */
import type { CsvList } from '../../lists/csv.ts';
import { defaultLimit } from '../../pages/mirrorOptions.ts';
import type { Mirror, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits } from '../formatValues.ts';
import { type Attributes, type Child, el } from './dom.ts';
import { announce, apiSource, capital, elsewhere, linkTo } from './parts.ts';
import { settings } from './settings.ts';
import { LISTS, type ListName, searchOf, targetOf, type View } from './views.ts';

/** Access of a page to the mirror: the requests of the main script, which keeps their answers. */
export interface Source extends Pick<typeof import('./requestMirror.ts'), 'mirror' | 'fetchStats' | 'fetchBlockStats' | 'findByLetters'> {
  readonly manifest: MirrorManifest;
  readonly signal: AbortSignal;
}

export interface Page {
  readonly title: string;
  /** Text for screen readers. */
  readonly said: string;
  readonly nodes: readonly Node[];
}

/** A window of a list. */
export interface Shown {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly results: readonly unknown[];
  /** The list describes the state after the block of this height. Undefined for the mirror's highest block. */
  readonly block_height?: number | undefined;
}

export interface List {
  /** Path of the list below `runes/v1`, and further parameters of its requests. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Fetches a window. Undefined if the mirror does not have the list. */
  readonly fetch: ((window: Pick<View, 'offset' | 'limit'>) => Promise<Shown>) | undefined;
  table(shown: Shown): HTMLElement;
  readonly empty: string;
  readonly missing?: string;
  /** Columns and name of the CSV file. Without columns, the list cannot be downloaded. */
  readonly csv?: CsvList;
  readonly name?: string;
  /** File with exactly this window, which also works on hosts without code. */
  readonly file?: string | undefined;
  /** True if the list has no total. Its tab then shows no number, and its table says which entries it has. */
  readonly isUncounted?: true;
}

export type Lists = Readonly<Partial<Record<ListName, List>>>;

/** Names of tabs that are not the name of their list. */
const NAMES: Readonly<Partial<Record<ListName, string>>> = {
  active: 'Most active',
  day: 'Active in 144 blocks',
  week: 'Active in 1,008 blocks',
};

/** Renders a page with the list that a view shows. Other lists are fetched when chosen, because they may be read from many files. */
export async function pageWithLists(
  view: View,
  title: string,
  lists: Lists,
  head: readonly Node[] | Promise<readonly Node[]>,
  { mirror, manifest }: Source,
): Promise<Page> {
  const names = LISTS[view.kind];
  const name = view.list ?? names.find((each) => lists[each]?.fetch !== undefined) ?? names[0];
  const list = name && lists[name];
  const [nodes, shown] = await Promise.all([head, list?.fetch?.(view)]);
  const chosen = { ...view, list: name };
  return {
    title: view.list === undefined ? title : `${title}, ${nameOf(view.list).toLowerCase()}`,
    said: saidOf(title, shown),
    nodes: [
      ...nodes,
      tabsOf(chosen, names, { [name ?? '']: list?.isUncounted ? undefined : shown?.total }),
      ...lagOf(shown?.block_height, manifest.tip?.height),
      ...(list === undefined ? [] : listNodes(chosen, list, shown, mirror)),
      ...elsewhere(view),
    ],
  };
}

const nameOf = (list: ListName): string => NAMES[list] ?? capital(list);

type Counts = Readonly<Partial<Record<string, number>>> | undefined;

/** Returns links to lists, with the numbers of their entries as soon as they are known: `records` for all records of a block. */
export function tabsOf(view: View, names: readonly (ListName | undefined)[], ...counts: (Counts | Promise<Counts>)[]): HTMLElement {
  const isBlock = view.kind === 'block';
  const isMissing = isBlock && !settings.operationPages;
  const textOf = (list: ListName | undefined) => (list === undefined ? 'all' : isBlock ? list : nameOf(list));
  const chips = names.map((list) =>
    isMissing && list !== undefined
      ? el('span', { class: 'chip', 'aria-disabled': 'true' }, textOf(list))
      : linkTo({ ...view, list, offset: 0 }, textOf(list), {
          class: 'chip',
          'data-step': `tab ${list}`,
          'data-operation': isBlock ? list : undefined,
          'aria-current': view.list === list ? 'true' : undefined,
        }),
  );
  for (const each of counts)
    void Promise.resolve(each).then((known) => {
      for (const [i, list] of names.entries()) {
        const number = known?.[list ?? 'records'];
        if (number !== undefined) chips[i]?.replaceChildren(textOf(list), ' ', el('span', { class: 'count' }, groupDigits(number)));
      }
    });
  const note = isMissing ? el('span', { class: 'quiet' }, 'This mirror was built without lists by operation.') : undefined;
  return el('nav', { class: 'chips', 'aria-label': isBlock ? 'Operations' : 'Lists' }, ...chips, note);
}

/** Returns a note that names the block whose state a list shows. Returns nothing if it is the mirror's highest block. */
function lagOf(height: number | undefined, tip: number | undefined): Node[] {
  if (height === undefined || tip === undefined || height >= tip) return [];
  const text =
    `Exact after block ${groupDigits(height)}, ${count(tip - height, 'block')} before the highest block of this mirror. ` +
    'Balances on pages of addresses are newer.';
  return [noteOf(text)];
}

const noteOf = (...children: readonly Child[]): HTMLElement => el('p', { class: 'note' }, ...children);

/** Renders a window of a list, its request and its download. `shown` is undefined if the mirror does not have the list. */
export function listNodes(view: View, list: List, shown: Shown | undefined, mirror: Mirror): Node[] {
  const { path, query, fetch, table, empty, missing, csv, name = view.id || 'runes', file, isUncounted } = list;
  if (fetch === undefined || shown === undefined) return [noteOf(missing)];
  const { total } = shown;
  // A row of activity may stand for several records.
  const range = `${rangeOf(shown)}${csv?.endsWith('activity') ? ' records' : ''}`;
  const read = () => mirror.all(({ offset = 0, limit }) => fetch({ offset, limit })) as AsyncIterable<object>;
  return [
    ...(total === 0 ? [noteOf(empty)] : isUncounted ? [table(shown)] : pagesOf(view, shown, range, table)),
    apiSource(targetOf(path, view, query), file, csv && total > 0 ? downloadButton(csv, name, total, read) : undefined),
  ];
}

/** Describes the shown window to screen readers. */
export const saidOf = (title: string, shown: Shown | undefined): string =>
  shown === undefined || shown.results.length === 0 ? title : `Entries ${rangeOf(shown)}`;

/** Formats the shown window: `21–40 of 1,234`. */
const rangeOf = ({ offset, total, results }: Shown): string =>
  `${groupDigits(offset + 1)}–${groupDigits(offset + results.length)} of ${groupDigits(total)}`;

/** Renders the table of a window below a paging row. If the list has other pages, there is another paging row below. */
function pagesOf(view: View, shown: Shown, range: string, table: List['table']): HTMLElement[] {
  const { total, results } = shown;
  if (results.length === 0) {
    const start = linkTo({ ...view, offset: 0 }, 'Show the first page');
    return [noteOf(`This list has ${count(total, 'entry', 'entries')} and ends before this page. `, start)];
  }
  const again = results.length < total ? [pagingOf(view, shown, range, 'Pages, again')] : [];
  return [pagingOf(view, shown, range, 'Pages'), table(shown), ...again];
}

/** Renders a paging row. It has links unless the list fits on a page of the smallest size. */
function pagingOf(view: View, shown: Shown, range: string, name: string): HTMLElement {
  const { total, offset, limit } = shown;
  const nav = el('nav', { class: 'paging', 'aria-label': name }, el('span', { class: 'range' }, range));
  if (total <= defaultLimit(settings) && offset === 0) return nav;
  const last = Math.floor((total - 1) / limit) * limit;
  const step = (text: string, arrow: string, to: number, isDead: boolean) =>
    stepTo(arrow, `${text} page`, isDead ? undefined : searchOf({ ...view, offset: to }), { 'data-step': `${name} ${text}` });
  nav.append(
    el(
      'span',
      { class: 'steps' },
      step('First', '«', 0, offset === 0),
      step('Previous', '‹', Math.max(offset - limit, 0), offset === 0),
      step('Next', '›', offset + limit, offset + limit >= total),
      step('Last', '»', last, offset >= last),
    ),
    sizes(view, limit, offset),
  );
  return nav;
}

/** Creates a link, disabled without `href`. The next page has a link with the same `data-step`, which can then get the focus. */
export const stepTo = (arrow: string, title: string, href: string | undefined, more: Attributes): HTMLElement =>
  href === undefined
    ? el('span', { class: 'chip', 'aria-disabled': 'true', title }, arrow)
    : el('a', { href, class: 'chip', 'aria-label': title, title, ...more }, arrow);

/** Returns links to the same offset with other page sizes. Links can be opened in a new tab, unlike entries of a menu. */
function sizes(view: View, limit: number, offset: number): HTMLElement {
  const each = settings.pageSizes.map((size, i) => {
    if (size === limit) return el('span', { class: 'chip', 'aria-current': 'true' }, groupDigits(size));
    const first = Math.floor(offset / size) * size;
    const to = { ...view, limit: i === 0 ? undefined : size, offset: first };
    return linkTo(to, groupDigits(size), { class: 'chip', 'aria-label': `${size} per page` });
  });
  return el('span', { class: 'sizes' }, ...each, ' per page');
}

/** Number of lines to collect as text before they become a Blob, because browsers can move Blobs to the disk. */
const LINES_AT_ONCE = 1000;

/** Creates a button that saves what `read` yields as CSV, and shows the progress. `name` is a part of the file's name. */
function downloadButton(list: CsvList, name: string, total: number, read: () => AsyncIterable<object>): HTMLButtonElement {
  const text = 'Download CSV';
  const button = el('button', { type: 'button', class: 'download' }, text);
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const blob = await csvOf(list, read(), (count) => {
        button.textContent = `${groupDigits(count)} of ${groupDigits(total)}`;
      });
      const href = URL.createObjectURL(blob);
      el('a', { href, download: `${list.replace('rune_', '')}-${name.replace(/[^0-9A-Za-z]+/g, '-')}.csv` }).click();
      // Releases the file after a minute: the browser has opened it by then.
      setTimeout(() => URL.revokeObjectURL(href), 60_000);
      button.textContent = text;
      announce('Downloaded the list');
    } catch (error) {
      button.textContent = 'Download failed: try again';
      button.title = error instanceof Error ? error.message : String(error);
      // If the user has opened another page, the download was aborted on purpose, so this is not announced.
      if (button.isConnected) announce(`The download failed: ${button.title}`);
    }
    button.disabled = false;
  });
  return button;
}

async function csvOf(list: CsvList, entries: AsyncIterable<object>, show: (count: number) => void): Promise<Blob> {
  // Names the bundle in the output (`.js`), because esbuild leaves this import unchanged (src/site/assets.ts).
  const { csvColumns, csvLine, csvLines } = await import('./download.js');
  const parts: Blob[] = [];
  let [lines, count] = [[csvLine(csvColumns(list))], 0];
  for await (const entry of entries) {
    lines = lines.concat(csvLines(list, entry));
    count += 1;
    if (lines.length < LINES_AT_ONCE) continue;
    parts.push(new Blob(lines));
    lines = [];
    show(count);
  }
  return new Blob([...parts, ...lines], { type: 'text/csv;charset=utf-8' });
}
