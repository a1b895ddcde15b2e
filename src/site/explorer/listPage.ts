/** The page of a block or a transaction: a separate bundle, which loads with the first such page. */
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';
import { pagePath, pagesOf, stemOf } from '../../pages/filePaths.ts';
import { isHeight, parseHexId } from '../../pages/parseIds.ts';
import type { Activity, ActivityPage, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { formatHeights, groupDigits, shorten } from '../formatValues.ts';
import { el } from './dom.ts';
import { type List, listNodes, type Page, type Source, saidOf, stepTo, tabsOf } from './lists.ts';
import { blockLink, elsewhere, facts, headOf, idWithCopy, linkTo, timeInFull, titleOf } from './parts.ts';
import { settings } from './settings.ts';
import { activityTable, totalsTable } from './table.ts';
import { HEX, LATEST, searchOf, type View, viewAt } from './views.ts';

/** Fetches and renders the page of a block or a transaction. Rejects with the client's errors. */
export async function pageOf(asked: View, source: Source): Promise<Page> {
  const { mirror, manifest, signal, fetchBlockStats } = source;
  const { kind } = asked;
  const id = asked.id === LATEST ? String(manifest.heights.at(-1)?.[1] ?? LATEST) : asked.id;
  const view = { ...asked, id };
  const operation = OPERATIONS.find((name) => name === view.list);
  const fetch: List['fetch'] = ({ offset, limit }) => mirror.activity({ [kind]: id, operation, offset, limit, signal });
  const result = (await fetch(view)) as ActivityPage;
  let [known] = result.results;
  // The window is empty, but the list may have records. Fetches a record for the heading.
  if (known === undefined && (operation !== undefined || view.offset > 0))
    [known] = (await mirror.activity({ [kind]: id, signal })).results;
  if (known === undefined) return unknownPage(view, manifest);
  const isBlock = kind === 'block';
  const title = isBlock ? `Block ${groupDigits(known.location.block_height)}` : `Transaction ${shorten(id)}`;
  const list: List = {
    path: `${kind}s/${id}/activity`,
    query: operation === undefined ? {} : { operation_type: operation },
    fetch,
    table: (page: ActivityPage) => activityTable(page, kind),
    empty: `There is no ${operation} in this block.`,
    csv: 'activity',
    name: [kind, id, operation].filter((part) => part !== undefined).join('-'),
    file: fileOf(view, operation, result),
  };
  const { location } = known;
  const countOf = (name: Operation) => result.results.filter((record) => record.operation === name).length;
  const isWhole = operation === undefined && result.results.length === result.total;
  const counts = isWhole ? Object.fromEntries(OPERATIONS.map((name) => [name, countOf(name)])) : fetchBlockStats(location);
  const top = isBlock
    ? [...blockHead(known, manifest), tabsOf(view, [undefined, ...OPERATIONS], { [operation ?? 'records']: result.total }, counts)]
    : [...transactionHead(known), ...(await totals(result, () => mirror.activity({ transaction: id, limit: MOST, signal })))];
  return { title, said: saidOf(title, result), nodes: [...top, ...listNodes(view, list, result, mirror), ...elsewhere(view)] };
}

function blockHead({ location }: Activity, { heights }: MirrorManifest): Node[] {
  const [previous, next] = neighboursOf(location.block_height, heights);
  const step = (height: number | undefined, text: string, arrow: string, key: string) => {
    const title = height === undefined ? text : `${text}: ${groupDigits(height)}`;
    return stepTo(arrow, title, height === undefined ? undefined : searchOf(viewAt('block', String(height))), { 'aria-keyshortcuts': key });
  };
  const steps = [step(previous, 'Previous block', '←', 'ArrowLeft'), step(next, 'Next block', '→', 'ArrowRight')];
  return [
    el(
      'div',
      { class: 'head' },
      titleOf(`Block ${groupDigits(location.block_height)}`),
      el('nav', { class: 'steps', 'aria-label': 'Blocks' }, ...steps),
    ),
    facts([
      ['Hash', idWithCopy(location.block_hash, 'block hash')],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

/** Returns the nearest heights of the mirror before and after a block. Undefined if there is none. */
function neighboursOf(height: number, heights: MirrorManifest['heights']): readonly (number | undefined)[] {
  let previous: number | undefined;
  for (const [first, last] of heights) {
    if (first > height) return [previous, first];
    previous = last < height ? last : height > first ? height - 1 : previous;
    if (height < last) return [previous, height + 1];
  }
  return [previous, undefined];
}

function transactionHead({ location }: Activity): Node[] {
  return [
    headOf('Transaction'),
    facts([
      ['Id', idWithCopy(location.tx_id, 'transaction id')],
      ['Block', el('span', {}, blockLink(location.block_height), `, position ${groupDigits(location.tx_index)}`)],
      ['Time', timeInFull(location.timestamp)],
    ]),
  ];
}

/** Maximum number of records on a page. */
const MOST = settings.pageSizes.at(-1) ?? 0;

/** Renders the totals of a transaction if all of its records fit on a page. A list of one record needs none. */
async function totals({ total, results }: ActivityPage, fetchAll: () => Promise<ActivityPage>): Promise<Node[]> {
  if (total < 2 || total > MOST) return [];
  // Without the complete list there are no totals, but the records can still be shown.
  const all = results.length === total ? results : ((await fetchAll().catch(() => undefined))?.results ?? []);
  return all.length === total && all.some(({ amount }) => amount !== undefined) ? [totalsTable(all)] : [];
}

/**
 * Returns the URL of the file with exactly this answer, which also works on hosts without code. Undefined in layout `archive`, for an empty
 * list, and for a window that is not a page or is past the end.
 */
function fileOf({ kind, id }: View, operation: Operation | undefined, page: ActivityPage): string | undefined {
  const { limit, offset, total } = page;
  const isFile = total > 0 && pagesOf(total, settings).some((each) => each.limit === limit && each.offset === offset);
  if (settings.layout !== 'files' || !isFile) return undefined;
  const hex = parseHexId(id);
  if (kind === 'transaction') return hex && pagePath(stemOf({ kind, txId: hex }, settings), page, settings);
  return pagePath(stemOf({ kind: 'block', block: hex ?? id, ...(operation && { operation }) }, settings), page, settings);
}

function unknownPage(view: View, { heights, tip }: MirrorManifest): Page {
  const { kind, id } = view;
  const height = kind === 'block' && isHeight(id) ? Number(id) : undefined;
  const near = height === undefined ? [] : neighboursOf(height, heights);
  const blocks = near.flatMap((each) => (each === undefined ? [] : [' ', blockLink(each)]));
  const last = tip?.height;
  const reason =
    height !== undefined && last !== undefined && height > last
      ? `Its highest block is ${groupDigits(last)}. Newer blocks come with its next build.`
      : `It knows blocks ${formatHeights(heights)}. A ${kind} without runes is not in it${kind === 'transaction' ? ', nor one that is not in a block yet' : ''}.`;
  const other = kind === 'block' ? 'transaction' : 'block';
  return {
    title: `${kind === 'block' ? 'Block' : 'Transaction'} ${height === undefined ? shorten(id) : groupDigits(height)}`,
    said: 'Nothing here',
    nodes: [
      headOf('Nothing here'),
      el('p', {}, `This mirror has no rune activity of ${kind} `, el('code', { class: 'whole' }, id), '.'),
      el('p', { class: 'quiet' }, reason),
      ...(blocks.length === 0 ? [] : [el('p', {}, 'Nearest with activity:', ...blocks)]),
      ...(HEX.test(id) ? [el('p', {}, linkTo(viewAt(other, id), `Look for a ${other} with this id`))] : []),
      ...elsewhere(view),
    ],
  };
}
