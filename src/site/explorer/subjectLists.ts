/** The lists on pages of a rune, an address and all runes: tabs, tables, and texts for a mirror that lacks them. */

import { CSV_PATHS, type CsvList } from '../../lists/csv.ts';
import type { FoundRune } from '../../lists/searchFiles.ts';
import type { Mirror, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { downloadButton } from './downloadButton.ts';
import { type FetchWindow, pagesOf, rangeOf, type Shown } from './paging.ts';
import { apiSource, elsewhere, linkTo } from './parts.ts';
import type { fetchStats } from './requestMirror.ts';
import { SUBJECT_LISTS, type SubjectList, type SubjectView, targetOf } from './views.ts';

/** Access of a page to the mirror. */
export interface Source {
  readonly mirror: Mirror;
  readonly manifest: MirrorManifest;
  readonly find: (letters: string) => Promise<readonly FoundRune[]>;
  readonly stats: typeof fetchStats;
  readonly signal: AbortSignal;
}

export interface DetailsPage {
  readonly title: string;
  /** Text for screen readers. */
  readonly said: string;
  readonly nodes: readonly Node[];
}

export interface SubjectPart {
  /** Path of the list below `runes/v1`. */
  readonly path: string;
  /** Undefined if the mirror does not have the list. */
  readonly fetch: FetchWindow | undefined;
  readonly table: (shown: Shown) => HTMLElement;
  /** Texts for an empty list, and for a mirror without this list. */
  readonly empty: string;
  readonly missing: string;
  /** True if the list has no total. Its tab then shows no number, and its table says which entries it has. */
  readonly isUncounted?: true;
}
export type SubjectParts = Readonly<Partial<Record<SubjectList, SubjectPart>>>;

const NAMES: Readonly<Record<SubjectList, string>> = {
  activity: 'Activity',
  holders: 'Holders',
  balances: 'Balances',
  outputs: 'Outputs',
  newest: 'Newest',
  active: 'Most active',
  day: 'Active in 144 blocks',
  week: 'Active in 1,008 blocks',
};

/**
 * Fetches the list that a view shows, and renders the page: head, tabs, list and request. Other lists are fetched only
 * when their tab is chosen, because a list of activity may be read from many files.
 */
export async function pageWithLists(
  view: SubjectView,
  title: string,
  parts: SubjectParts,
  head: readonly Node[] | Promise<readonly Node[]>,
  mirror: Mirror,
): Promise<DetailsPage> {
  const names = SUBJECT_LISTS[view.kind];
  const list = view.list ?? names.find((name) => parts[name]?.fetch !== undefined) ?? names[0] ?? 'activity';
  const [nodes, shown, { tip }] = await Promise.all([
    head,
    parts[list]?.fetch?.({ offset: view.offset, limit: view.limit }),
    mirror.manifest(),
  ]);
  return {
    title: view.list === undefined ? title : `${title}, ${NAMES[list].toLowerCase()}`,
    said: shown === undefined || shown.results.length === 0 ? title : `Entries ${rangeOf(shown)}`,
    nodes: [
      ...nodes,
      tabsOf({ ...view, list }, parts[list]?.isUncounted ? undefined : shown?.total),
      ...lagOf(shown?.block_height, tip?.height),
      ...listNodes({ ...view, list }, shown, parts[list], mirror),
      ...(view.kind === 'runes' ? [] : elsewhere(view)),
    ],
  };
}

function tabsOf(view: SubjectView, total: number | undefined): HTMLElement {
  const tabs = SUBJECT_LISTS[view.kind].map((name) => {
    const isShown = name === view.list;
    const number = isShown && total !== undefined ? [' ', el('span', { class: 'count' }, groupDigits(total))] : [];
    return linkTo({ ...view, list: name, limit: undefined, offset: 0 }, [NAMES[name], ...number], {
      class: 'chip',
      'data-step': `tab ${name}`,
      'aria-current': isShown ? 'true' : undefined,
    });
  });
  return el('nav', { class: 'chips', 'aria-label': 'Lists' }, ...tabs);
}

/** Returns a note that names the block whose state a list shows. Returns nothing if it is the mirror's highest block. */
function lagOf(height: number | undefined, tip: number | undefined): Node[] {
  if (height === undefined || tip === undefined || height >= tip) return [];
  const text =
    `Exact after block ${groupDigits(height)}, ${count(tip - height, 'block')} before the highest block of this mirror. ` +
    'Balances on pages of addresses are newer.';
  return [el('p', { class: 'note' }, text)];
}

function listNodes(view: SubjectView, shown: Shown | undefined, part: SubjectPart | undefined, mirror: Mirror): Node[] {
  if (part?.fetch === undefined || shown === undefined) return [el('p', { class: 'note' }, part?.missing)];
  const [target, fetch] = [targetOf(part.path, view), part.fetch];
  const pages = () => (part.isUncounted ? [part.table(shown)] : pagesOf(view, shown, count(shown.total, 'entry', 'entries'), part.table));
  const list = shown.total === 0 ? [el('p', { class: 'note' }, part.empty)] : pages();
  const csv = view.kind === 'rune' && view.list === 'activity' ? 'rune_activity' : (view.list ?? 'activity');
  if (shown.total === 0 || !isCsv(csv)) return [...list, apiSource(target)];
  const read = () => mirror.all(({ offset = 0, limit }) => fetch({ offset, limit })) as AsyncIterable<object>;
  return [...list, apiSource(target, target, downloadButton(csv, view.id || 'runes', shown.total, read))];
}

const isCsv = (list: string): list is CsvList => list in CSV_PATHS;
