/** The page of all runes, with three lists: the newest runes, runes that can be minted, and the most active runes. */
import type { RuneStats } from '../../contract/statsSchemas.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import type { Etching, Rune } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits } from '../formatValues.ts';
import { type Child, el } from './dom.ts';
import { type MintNow, mintNow } from './mintState.ts';
import type { Shown } from './paging.ts';
import { blockLink, linkTo, timeOf } from './parts.ts';
import { nameCell } from './runeCells.ts';
import { runeSearchPage } from './runeSearchPage.ts';
import { shareCell } from './shares.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectParts } from './subjectLists.ts';
import { type Column, numbersOf, tableOf } from './tableOf.ts';
import type { SubjectView } from './views.ts';

/** Number of runes that a page of open mints reads at once. The API has no list of open mints, so the page searches. */
const READ_AT_ONCE = 240;
/** A page of open mints ends after this number of open mints, or after this number of searched runes. */
const ENOUGH_OPEN = 60;
const MOST_SEARCHED = 1200;

export function runesPage(view: SubjectView, source: Source): Promise<DetailsPage> {
  if (view.id !== '') return runeSearchPage(view, source);
  const { mirror, manifest, stats, signal } = source;
  const has = manifest.lists?.etchings;
  const missing = 'This mirror does not have etchings. Its most active runes are known.';
  const parts: SubjectParts = {
    newest: {
      path: 'etchings',
      fetch: has && ((window) => mirror.etchings({ ...window, signal })),
      table: ({ results }) => newestTable(results as readonly Etching[], has?.counts === true, manifest),
      empty: 'This mirror has no runes.',
      missing,
    },
    open: {
      path: 'etchings',
      fetch: has && (({ offset }) => searched(offset)),
      table: (shown) => openMints(view, shown, manifest),
      empty: 'This mirror has no runes.',
      missing,
      isUncounted: true,
    },
    active: {
      path: 'stats.json',
      fetch: async () => {
        const { runes } = await stats();
        return { limit: runes.length, offset: 0, total: runes.length, results: runes };
      },
      table: ({ results }) =>
        tableOf('records runes-list active-list', 'Runes, the most records first', ACTIVE, [results as readonly RuneStats[]]),
      empty: 'This mirror has no activity.',
      missing: '',
      isUncounted: true,
    },
  };
  /** Reads runes from an offset on until enough of them can be minted. */
  async function searched(offset: number): Promise<Shown> {
    const limit = Math.min(manifest.page_sizes.at(-1) ?? READ_AT_ONCE, READ_AT_ONCE);
    let results: readonly Etching[] = [];
    for (let open = 0; ; ) {
      const starts = Array.from({ length: Math.floor(READ_AT_ONCE / limit) }, (_, i) => offset + results.length + i * limit);
      const pages = await Promise.all(starts.map((start) => mirror.etchings({ offset: start, limit, signal })));
      const found = pages.flatMap((page) => page.results);
      results = [...results, ...found];
      open += found.filter((etching) => mintNow(etching, manifest)?.isOpen).length;
      const total = pages[0]?.total ?? 0;
      const isDone = found.length === 0 || offset + results.length >= total;
      if (isDone || open >= ENOUGH_OPEN || results.length >= MOST_SEARCHED) return { limit: results.length, offset, total, results };
    }
  }
  return pageWithLists(view, 'Runes', parts, [el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Runes'))], mirror);
}

type Listed = Etching & { readonly mint: MintNow | undefined };

const RUNE: Column<Rune> = { name: 'Rune', width: '34%', cell: nameCell };
const MINT: Column<Listed> = {
  name: 'Mint',
  cell: ({ mint }) =>
    mint === undefined
      ? [el('span', { class: 'quiet' }, 'None')]
      : [el('span', { class: 'state', 'data-open': String(mint.isOpen) }, mint.text), ...shareCell(mint.share)],
};

function newestTable(etchings: readonly Etching[], hasCounts: boolean, manifest: Source['manifest']): HTMLElement {
  const columns: readonly Column<Listed>[] = [
    RUNE,
    { name: 'Etched', cell: ({ location }) => [blockLink(location.block_height), ' ', ...etchedAt(location.timestamp)] },
    { name: hasCounts ? 'Supply' : 'Premine', amount: ({ supply }) => supply.current ?? supply.premine },
    MINT,
  ];
  return tableOf('records runes-list', 'Runes, the newest first', columns, [
    etchings.map((etching) => ({ ...etching, mint: mintNow(etching, manifest) })),
  ]);
}

/** The rune that the protocol itself etched has no time. */
const etchedAt = (timestamp: number): Child[] => (timestamp === 0 ? [] : [el('span', { class: 'quiet' }, timeOf(timestamp))]);

function openMints(view: SubjectView, shown: Shown, manifest: Source['manifest']): HTMLElement {
  const { offset, total, results } = shown;
  const open = (results as readonly Etching[])
    .map((etching) => ({ ...etching, mint: mintNow(etching, manifest) }))
    .filter(({ mint }) => mint?.isOpen);
  const columns: readonly Column<Listed>[] = [
    RUNE,
    { name: 'Each mint', amount: ({ mint }) => mint?.amount },
    { name: 'Mints left', isNumber: true, cell: ({ mint }) => [mint?.left === undefined ? 'unknown' : groupDigits(mint.left)] },
    MINT,
  ];
  const uncounted = manifest.lists?.etchings?.counts ? '' : ' This mirror lacks older blocks, so all mints of some of them may be made.';
  const which = offset === 0 ? groupDigits(results.length) : `${groupDigits(offset + 1)}–${groupDigits(offset + results.length)}`;
  const next = offset + results.length;
  const note =
    `Searched ${which} of ${count(total, 'rune')}, newest first. ` +
    `${groupDigits(open.length)} of them can be minted in the next block.${uncounted}`;
  return el(
    'div',
    {},
    el('p', {}, note),
    ...(open.length === 0 ? [] : [tableOf('records runes-list', 'Runes with open mints, the newest first', columns, [open])]),
    ...(next >= total ? [] : [el('p', {}, linkTo({ ...view, offset: next }, 'Search on', { class: 'chip', 'data-step': 'Search on' }))]),
  );
}

const ACTIVE: readonly Column<RuneStats>[] = [
  RUNE,
  ...(['records', ...OPERATIONS.filter((name) => name !== 'etching' && name !== 'receive')] as const).map((name) =>
    numbersOf<RuneStats>(`${name.charAt(0).toUpperCase()}${name.slice(1)}`, (rune) => rune[name]),
  ),
];
