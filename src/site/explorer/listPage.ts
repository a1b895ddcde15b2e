/**
 * The view of a list: its heading, filters, records and links to other pages.
 */
import { isHeight, parseHexId } from '../../pages/ids.ts';
import { OPERATIONS, type Operation } from '../../pages/lists.ts';
import { pagePath, stemOf } from '../../pages/paths.ts';
import { defaultLimit } from '../../pages/site.ts';
import { exactPage } from '../../pages/window.ts';
import { count, groupDigits, shorten } from '../format.ts';
import { el } from './dom.ts';
import { pagingOf } from './paging.ts';
import { apiSource, facts, idWithCopy, linkTo, timeInFull } from './parts.ts';
import { settings } from './settings.ts';
import type { Activity, Neighbours, Result } from './source.ts';
import { activityTable } from './table.ts';
import { apiTarget, type ListView, otherReading } from './views.ts';

/** Renders a list that has records. `known` is any record of it, even if this window is empty. */
export function listPage(view: ListView, result: Result, known: Activity, neighbours: Neighbours): Node[] {
  const top = view.kind === 'block' ? blockHead(known, neighbours) : transactionHead(known);
  const records =
    result.results.length > 0
      ? [pagingOf(view, result, 'Pages'), activityTable(result.results, view.kind), pagingOf(view, result, 'Pages, again')]
      : [nothingHere(view, result)];
  return [...top, ...(view.kind === 'block' ? [filters(view)] : []), ...records, apiSource(apiTarget(view), fileOf(view, result))];
}

/** Names a view for the title. A block goes by its height once a record of it is known. */
export function nameOf(view: ListView, known?: Activity): string {
  if (view.kind === 'transaction') return `Transaction ${shorten(view.id)}`;
  const height = known?.location.block_height ?? (isHeight(view.id) ? view.id : undefined);
  return `Block ${height === undefined ? shorten(view.id) : groupDigits(height)}`;
}

function blockHead({ location }: Activity, { previous, next }: Neighbours): Node[] {
  const step = (height: number | undefined, text: string, arrow: string) =>
    height === undefined
      ? el('span', { class: 'step', 'aria-disabled': 'true' }, arrow)
      : el(
          'a',
          {
            class: 'step',
            href: `?block=${height}`,
            'aria-label': `${text}: ${groupDigits(height)}`,
            title: `${text}: ${groupDigits(height)}`,
          },
          arrow,
        );
  return [
    el(
      'div',
      { class: 'head' },
      el('h1', { tabindex: '-1' }, `Block ${groupDigits(location.block_height)}`),
      el('nav', { class: 'steps', 'aria-label': 'Blocks' }, step(previous, 'Previous block', '←'), step(next, 'Next block', '→')),
    ),
    facts([
      ['Hash', idWithCopy(location.block_hash, 'block hash', { shown: shorten(location.block_hash, 14) })],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

function transactionHead({ location }: Activity): Node[] {
  return [
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Transaction')),
    facts([
      ['Id', idWithCopy(location.tx_id, 'transaction id', { shown: shorten(location.tx_id, 14) })],
      [
        'Block',
        el(
          'span',
          {},
          linkTo({ kind: 'block', id: String(location.block_height), offset: 0 }, groupDigits(location.block_height)),
          `, transaction ${groupDigits(location.tx_index)} of it`,
        ),
      ],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

/** Links that filter a block by operation. Disabled, with the reason, if the mirror has no lists by operation. */
function filters(view: ListView): HTMLElement {
  const one = (operation: Operation | undefined) => {
    const text = operation ?? 'all';
    if (!settings.operationPages && operation !== undefined) return el('span', { class: 'chip', 'aria-disabled': 'true' }, text);
    const link = linkTo({ ...view, operation, offset: 0 }, text);
    link.classList.add('chip');
    if (operation !== undefined) link.dataset['operation'] = operation;
    if (view.operation === operation) link.setAttribute('aria-current', 'true');
    return link;
  };
  return el(
    'nav',
    { class: 'chips', 'aria-label': 'Operations' },
    ...[undefined, ...OPERATIONS].map(one),
    settings.operationPages ? undefined : el('span', { class: 'quiet' }, 'This mirror was built without lists by operation.'),
  );
}

function nothingHere(view: ListView, { total }: Result): HTMLElement {
  if (total === 0) {
    const all = linkTo({ ...view, operation: undefined, offset: 0 }, 'Show all records of the block');
    return el('p', { class: 'note' }, `There is no ${view.operation} in this block. `, all);
  }
  const start = linkTo({ ...view, offset: 0 }, 'Show the first page');
  return el('p', { class: 'note' }, `This list has ${count(total, 'record')} and ends before this page. `, start);
}

/**
 * Returns the file with exactly this answer, which also works on hosts without code. Undefined in layout `archive`, for
 * a window that is not a page or is past the end, and for an empty list.
 */
function fileOf({ kind, id, operation }: ListView, { limit, offset, total }: Result): string | undefined {
  const page = exactPage({ limit, offset }, settings);
  const hex = parseHexId(id);
  const isFirst = offset === 0 && limit === defaultLimit(settings);
  if (settings.layout !== 'files' || page === undefined || offset >= total || !(isFirst || total > defaultLimit(settings)))
    return undefined;
  if (kind === 'transaction') return hex && pagePath(stemOf({ kind, txId: hex }, settings), page, settings);
  return pagePath(stemOf({ kind, block: hex ?? id, ...(operation === undefined ? {} : { operation }) }, settings), page, settings);
}

/** Renders the answer to an unknown id. `heights` is the text of the mirror's heights. */
export function unknownPage(view: ListView, heights: string): Node[] {
  const other = otherReading(view);
  const what = view.kind === 'block' ? 'block' : 'transaction';
  return [
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Nothing here')),
    el('p', {}, `This mirror has no rune activity of ${what} `, el('code', { class: 'whole' }, view.id), '.'),
    el('p', { class: 'quiet' }, `It has the blocks with activity at ${heights}. A ${what} without runes is not in it.`),
    other === undefined ? undefined : el('p', {}, linkTo(other, `Look for a ${other.kind} with this id`)),
  ].filter((node) => node !== undefined);
}
