/** The page of all runes, with lists of the newest runes, and of the most active runes ever and in the last blocks. */
import type { RuneStats } from '../../contract/statsSchemas.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import type { Etching, Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { compareAmounts } from './amountMath.ts';
import { el } from './dom.ts';
import { type MintNow, mintNow } from './mintState.ts';
import type { Shown } from './paging.ts';
import { nameCell } from './runeCells.ts';
import { runeSearchPage } from './runeSearchPage.ts';
import { shareCell } from './shares.ts';
import { byName, type Compare, sortable } from './sortable.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectPart, type SubjectParts } from './subjectLists.ts';
import { BLOCK_WIDTH, blockCell } from './table.ts';
import { type Column, numbersOf, tableOf } from './tableOf.ts';
import type { SubjectView } from './views.ts';

export function runesPage(view: SubjectView, source: Source): Promise<DetailsPage> {
  if (view.id !== '') return runeSearchPage(view, source);
  const { mirror, manifest, stats, signal } = source;
  const has = manifest.lists?.etchings;
  const missing = 'This mirror does not have etchings. Its most active runes are known.';
  const parts: SubjectParts = {
    newest: {
      path: 'etchings',
      fetch: has && ((window) => mirror.etchings({ ...window, signal })),
      table: (shown) => newestTable(shown, has?.counts === true, manifest),
      empty: 'This mirror has no runes.',
      missing,
    },
    active: {
      path: 'stats.json',
      fetch: async () => {
        const { runes } = await stats();
        return { limit: runes.length, offset: 0, total: runes.length, results: runes };
      },
      table: ({ results }) => activeTable(results as readonly RuneStats[]),
      empty: 'This mirror has no activity.',
      missing: '',
      isUncounted: true,
    },
    day: recentlyActive(0, stats),
    week: recentlyActive(1, stats),
  };
  return pageWithLists(view, 'Runes', parts, [el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Runes'))], mirror);
}

type Listed = Etching & { readonly mint: MintNow | undefined };

const RUNE: Column<Rune> = { name: 'Rune', width: '34%', cell: nameCell };
const MINT: Column<Listed> = {
  name: 'Mint',
  cell: ({ mint }) =>
    mint === undefined
      ? [el('span', { class: 'quiet' }, 'None')]
      : [el('span', { class: 'state', 'data-open': String(mint.isOpen) }, mint.text), ' ', ...shareCell(mint.share)],
};

/** Orders that a reader may choose. Within a block, runes are ordered by transaction. */
const ETCHING_ORDERS: Readonly<Record<string, Compare<Listed>>> = {
  Rune: byName,
  Etched: (a, b) => a.number - b.number,
  Supply: (a, b) => compareAmounts(supplyOf(a), supplyOf(b)),
  Premine: (a, b) => compareAmounts(a.supply.premine, b.supply.premine),
  Mints: (a, b) => compareAmounts(a.supply.total_mints ?? '0', b.supply.total_mints ?? '0'),
};

const supplyOf = ({ supply }: Etching): string => supply.current ?? supply.premine;

function newestTable({ results, total }: Shown, hasCounts: boolean, manifest: Source['manifest']): HTMLElement {
  const listed = (results as readonly Etching[]).map((etching) => ({ ...etching, mint: mintNow(etching, manifest) }));
  const columns: readonly Column<Listed>[] = [
    RUNE,
    { name: 'Etched', least: BLOCK_WIDTH, cell: blockCell },
    { name: hasCounts ? 'Supply' : 'Premine', amount: supplyOf },
    ...(hasCounts ? [numbersOf<Listed>('Mints', ({ supply }) => supply.total_mints ?? '0')] : []),
    MINT,
  ];
  const table = tableOf('records runes-list', 'Runes, the newest first', columns, [listed]);
  return sortable(table, listed, ETCHING_ORDERS, { isPart: listed.length < total });
}

const COUNTED = ['records', ...OPERATIONS.filter((name) => name !== 'etching' && name !== 'receive')] as const;
const headOf = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
const ACTIVE: readonly Column<RuneStats>[] = [RUNE, ...COUNTED.map((name) => numbersOf<RuneStats>(headOf(name), (rune) => rune[name]))];
const ACTIVE_ORDERS: Readonly<Record<string, Compare<RuneStats>>> = {
  Rune: byName,
  ...Object.fromEntries(COUNTED.map((name) => [headOf(name), (a: RuneStats, b: RuneStats) => a[name] - b[name]])),
};

function activeTable(runes: readonly RuneStats[]): HTMLElement {
  const table = tableOf('records runes-list', 'Runes, the most records first', ACTIVE, [runes]);
  return sortable(table, runes, ACTIVE_ORDERS, { first: 'Records', isPart: false });
}

/** Returns the list of the runes with the most records in some of the last heights (`recent` in the statistics). */
function recentlyActive(at: number, stats: Source['stats']): SubjectPart {
  return {
    path: 'stats.json',
    fetch: async () => {
      const { first = 0, last = 0, runes = [] } = (await stats()).recent[at] ?? {};
      return { limit: runes.length, offset: 0, total: runes.length, results: runes, first, last };
    },
    table: (shown) => {
      const { first, last, results } = shown as Shown & { readonly first: number; readonly last: number };
      return el(
        'div',
        {},
        el('p', {}, `Blocks ${groupDigits(first)} to ${groupDigits(last)}.`),
        activeTable(results as readonly RuneStats[]),
      );
    },
    empty: 'No rune was active in these blocks.',
    missing: '',
    isUncounted: true,
  };
}
