/**
 * The view of a block or a transaction: its heading, filters, records and links to other pages. A separate bundle,
 * which loads with the first such view.
 */

import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';
import { pagePath, stemOf } from '../../pages/filePaths.ts';
import { defaultLimit } from '../../pages/mirrorOptions.ts';
import { isHeight, parseHexId } from '../../pages/parseIds.ts';
import { isPage } from '../../pages/windowToPages.ts';
import type { Activity, ActivityPage, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { count, formatHeights, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { downloadButton } from './downloadButton.ts';
import { type Neighbours, neighboursOf } from './neighbourBlocks.ts';
import { deadStep, pagesOf, stepTo } from './paging.ts';
import { apiSource, blockLink, elsewhere, facts, idWithCopy, linkTo, timeInFull } from './parts.ts';
import type { fetchBlockStats, fetchList, mirror } from './requestMirror.ts';
import { settings } from './settings.ts';
import { activityTable, totalsTable } from './table.ts';
import { apiTarget, type ListView, otherReading } from './views.ts';

/** Functions with which the view requests data from the mirror. */
interface Requests {
  readonly mirror: typeof mirror;
  readonly fetchList: typeof fetchList;
  readonly fetchBlockStats: typeof fetchBlockStats;
  readonly signal: AbortSignal;
}

/** Renders a list that has records. `known` is any record of the list, even if this window is empty. */
export async function listPage(
  view: ListView,
  result: ActivityPage,
  known: Activity,
  neighbours: Neighbours,
  requests: Requests,
): Promise<Node[]> {
  const top =
    view.kind === 'block'
      ? [...blockHead(known, neighbours), filters(view, result, known, requests)]
      : [...transactionHead(known), ...(await totals(view, result, requests))];
  const list =
    result.total === 0
      ? [noneOfOperation(view)]
      : pagesOf(view, result, count(result.total, 'record'), (page) => activityTable(page, view.kind));
  return [...top, ...list, apiSource(apiTarget(view), fileOf(view, result), downloadOf(view, result.total, requests)), ...elsewhere(view)];
}

function downloadOf(view: ListView, total: number, { mirror, fetchList, signal }: Requests): HTMLElement | undefined {
  const read = () => mirror.all((window) => fetchList({ ...view, offset: window.offset ?? 0, limit: window.limit }, signal));
  return total === 0
    ? undefined
    : downloadButton('activity', `${view.kind}-${view.id}-${view.operation ?? ''}`.replace(/-$/, ''), total, read);
}

function blockHead({ location }: Activity, { previous, next }: Neighbours): Node[] {
  const step = (height: number | undefined, text: string, arrow: string, key: string) => {
    if (height === undefined) return deadStep(arrow);
    const link = stepTo(`?block=${height}`, arrow, `${text}: ${groupDigits(height)}`);
    link.setAttribute('aria-keyshortcuts', key);
    return link;
  };
  return [
    el(
      'div',
      { class: 'head' },
      el('h1', { tabindex: '-1' }, `Block ${groupDigits(location.block_height)}`),
      el(
        'nav',
        { class: 'steps', 'aria-label': 'Blocks' },
        step(previous, 'Previous block', '←', 'ArrowLeft'),
        step(next, 'Next block', '→', 'ArrowRight'),
      ),
    ),
    facts([
      ['Hash', idWithCopy(location.block_hash, 'block hash')],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

function transactionHead({ location }: Activity): Node[] {
  return [
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Transaction')),
    facts([
      ['Id', idWithCopy(location.tx_id, 'transaction id')],
      ['Block', el('span', {}, blockLink(location.block_height), `, position ${groupDigits(location.tx_index)}`)],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

/** Renders the totals of a transaction if all of its records fit on a page. A list of one record needs none. */
async function totals(view: ListView, result: ActivityPage, { fetchList, signal }: Requests): Promise<Node[]> {
  const { total } = result;
  const most = settings.pageSizes.at(-1) ?? 0;
  if (total < 2 || total > most) return [];
  // Without the complete list there are no totals, but the records can still be shown.
  const whole =
    result.results.length === total ? result : await fetchList({ ...view, limit: most, offset: 0 }, signal).catch(() => undefined);
  const all = whole?.results ?? [];
  return all.length === total && all.some(({ amount }) => amount !== undefined) ? [totalsTable(all)] : [];
}

/**
 * Returns links that filter a block by operation, with the number of records of each if known. If the mirror has no
 * lists by operation, disables the links and says why.
 */
function filters(
  view: ListView,
  { total, results }: ActivityPage,
  { location }: Activity,
  { fetchBlockStats }: Pick<Requests, 'fetchBlockStats'>,
): HTMLElement {
  const one = (operation: Operation | undefined) => {
    const text = operation ?? 'all';
    if (!settings.operationPages && operation !== undefined) return el('span', { class: 'chip', 'aria-disabled': 'true' }, text);
    const current = view.operation === operation ? 'true' : undefined;
    return linkTo({ ...view, operation, offset: 0 }, text, { class: 'chip', 'data-operation': operation, 'aria-current': current });
  };
  const chips = [undefined, ...OPERATIONS].map((operation) => ({ operation, chip: one(operation) }));
  const show = (counts: Readonly<Partial<Record<Operation | 'records', number>>>) => {
    for (const { operation, chip } of chips) {
      const number = counts[operation ?? 'records'];
      if (number !== undefined) chip.replaceChildren(operation ?? 'all', ' ', el('span', { class: 'count' }, groupDigits(number)));
    }
  };
  show({ [view.operation ?? 'records']: total });
  if (view.operation === undefined && results.length === total) {
    const countOf = (name: Operation) => results.filter(({ operation }) => operation === name).length;
    show(Object.fromEntries(OPERATIONS.map((name) => [name, countOf(name)])));
  } else void fetchBlockStats(location).then((counts) => counts !== undefined && show(counts));
  return el(
    'nav',
    { class: 'chips', 'aria-label': 'Operations' },
    ...chips.map(({ chip }) => chip),
    settings.operationPages ? undefined : el('span', { class: 'quiet' }, 'This mirror was built without lists by operation.'),
  );
}

function noneOfOperation(view: ListView): HTMLElement {
  const all = linkTo({ ...view, operation: undefined, offset: 0 }, 'Show all records of the block');
  return el('p', { class: 'note' }, `There is no ${view.operation} in this block. `, all);
}

/**
 * Returns the URL of the file with exactly this answer, which also works on hosts without code. Undefined in layout
 * `archive`, for an empty list, and for a window that is not a page or is past the end.
 */
function fileOf({ kind, id, operation }: ListView, page: ActivityPage): string | undefined {
  const { limit, offset, total } = page;
  const hex = parseHexId(id);
  const isFirst = offset === 0 && limit === defaultLimit(settings);
  if (settings.layout !== 'files' || !isPage(page, settings) || offset >= total || !(isFirst || total > defaultLimit(settings)))
    return undefined;
  if (kind === 'transaction') return hex && pagePath(stemOf({ kind, txId: hex }, settings), page, settings);
  return pagePath(stemOf({ kind, block: hex ?? id, ...(operation === undefined ? {} : { operation }) }, settings), page, settings);
}

/** Renders the answer to an unknown id, with links to the nearest blocks. */
export function unknownPage(view: ListView, { heights, tip }: MirrorManifest): Node[] {
  const { kind, id } = view;
  const other = otherReading(view);
  const height = kind === 'block' && isHeight(id) ? Number(id) : undefined;
  const near = height === undefined ? undefined : neighboursOf(height, heights);
  const blocks = [near?.previous, near?.next].flatMap((each) => (each === undefined ? [] : [' ', blockLink(each)]));
  const last = tip?.height;
  const isAbove = height !== undefined && last !== undefined && height > last;
  return [
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Nothing here')),
    el('p', {}, `This mirror has no rune activity of ${kind} `, el('code', { class: 'whole' }, id), '.'),
    el(
      'p',
      { class: 'quiet' },
      isAbove
        ? `Its highest block is ${groupDigits(last)}. Newer blocks come with its next build.`
        : `It knows blocks ${formatHeights(heights)}. A ${kind} without runes is not in it${kind === 'transaction' ? ', nor one that is not in a block yet' : ''}.`,
    ),
    blocks.length === 0 ? undefined : el('p', {}, 'Nearest with activity:', ...blocks),
    other === undefined ? undefined : el('p', {}, linkTo(other, `Look for a ${other.kind} with this id`)),
    ...elsewhere(view),
  ].filter((node) => node !== undefined);
}
