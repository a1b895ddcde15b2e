/** Lists of the newest runes, and of the most active ones ever and in the last blocks; and the page of a search by the first letters. */
import type { RuneStats, Stats } from '../../contract/statsSchemas.ts';
import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import type { Etching, EtchingPage, Rune } from '../../serve/client/mirrorClient.ts';
import { formatHeights, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { type List, type Lists, type Page, pageWithLists, type Shown, type Source } from './lists.ts';
import { type Mint, mintOf } from './mintState.ts';
import { capital, elsewhere, headOf, linkTo, nameCell, shareCell } from './parts.ts';
import { BLOCK_WIDTH, blockCell } from './table.ts';
import { byName, type Column, numbersOf, sortable, tableOf } from './tableOf.ts';
import { type View, viewAt } from './views.ts';

export function runesPage(view: View, source: Source): Promise<Page> {
  if (view.id !== '') return runeSearchPage(view, source);
  const { mirror, manifest, fetchStats, signal } = source;
  const has = manifest.lists?.etchings;
  const lists: Lists = {
    newest: {
      path: 'etchings',
      fetch: has && ((window) => mirror.etchings({ ...window, signal })),
      table: (shown: EtchingPage) => newestTable(shown, has?.counts === true, manifest),
      empty: 'This mirror has no runes.',
      missing: 'This mirror does not have etchings. Its most active runes are known.',
      csv: 'newest',
    },
    active: {
      ...activeList(async () => ({ runes: (await fetchStats()).runes }), 'This mirror has no activity.'),
      csv: 'active',
    },
    day: activeList(async () => (await fetchStats()).recent[0], 'No rune was active in these blocks.'),
    week: activeList(async () => (await fetchStats()).recent[1], 'No rune was active in these blocks.'),
  };
  return pageWithLists(view, 'Runes', lists, [headOf('Runes')], source);
}

type Listed = Etching & { readonly mint: Mint | undefined };

const RUNE: Column<Rune> = { name: 'Rune', width: '32%', cell: nameCell, order: byName };
const MINT: Column<Listed> = {
  name: 'Mint',
  cell: ({ mint }) =>
    mint === undefined
      ? [el('span', { class: 'quiet' }, 'None')]
      : [el('span', { class: 'state', 'data-open': String(mint.isOpen) }, mint.text), ' ', ...shareCell(mint.share)],
};

function newestTable({ results, total }: EtchingPage, hasCounts: boolean, manifest: Source['manifest']): HTMLElement {
  const listed = results.map((etching) => ({ ...etching, mint: mintOf(etching, manifest) }));
  const columns: readonly Column<Listed>[] = [
    RUNE,
    // Within a block, runes are ordered by transaction.
    { name: 'Etched', least: BLOCK_WIDTH, cell: blockCell, order: (a, b) => a.number - b.number },
    { name: hasCounts ? 'Supply' : 'Premine', amount: ({ supply }) => supply.current ?? supply.premine },
    ...(hasCounts ? [numbersOf<Listed>('Mints', ({ supply }) => supply.total_mints ?? '0')] : []),
    MINT,
  ];
  const table = tableOf('records runes-list', 'Runes, the newest first', columns, [listed]);
  return sortable(table, columns, listed, { isPart: results.length < total });
}

const COUNTED = ['records', ...OPERATIONS.filter((name) => name !== 'etching' && name !== 'receive')] as const;
const ACTIVE: readonly Column<RuneStats>[] = [RUNE, ...COUNTED.map((name) => numbersOf<RuneStats>(capital(name), (rune) => rune[name]))];

/** Runes with many records, and the range of heights that has these records, unless it is all heights. */
type Active = Partial<Stats['recent'][number]>;

const activeList = (read: () => Promise<Active | undefined>, empty: string): List => ({
  path: 'stats.json',
  fetch: async () => {
    const { runes = [], ...heights } = (await read()) ?? {};
    return { limit: runes.length, offset: 0, total: runes.length, results: runes, ...heights };
  },
  table: activeTable,
  empty,
  isUncounted: true,
});

function activeTable({ results, first, last }: Shown & Omit<Active, 'runes'>): HTMLElement {
  const runes = results as readonly RuneStats[];
  const table = tableOf('records runes-list', 'Runes, the most records first', ACTIVE, [runes]);
  sortable(table, ACTIVE, runes, { first: 'Records', isPart: false });
  if (first === undefined || last === undefined) return table;
  return el('div', {}, el('p', {}, `Blocks ${groupDigits(first)} to ${groupDigits(last)}.`), table);
}

const FOUND: readonly Column<FoundRune>[] = [
  {
    name: 'Rune',
    cell: ([spaced_name, id, number, symbol]) => nameCell({ id, number, spaced_name, name: spaced_name.replaceAll('•', ''), symbol }),
  },
  numbersOf('Number', ([, , number]) => number),
];

/** Finds names that begin with the letters, or with as many of them as possible. Also is the page of a rune that the mirror lacks. */
export async function runeSearchPage(view: View, { findByLetters, manifest }: Source): Promise<Page> {
  const { kind, id } = view;
  let letters = lettersOf(id) ?? '';
  let found = letters === '' ? [] : await findByLetters(letters);
  while (found.length === 0 && letters.length > 2) {
    letters = letters.slice(0, -1);
    found = await findByLetters(letters);
  }
  const isName = kind === 'runes' || letters !== '';
  const said =
    found.length === 0
      ? 'No name of a rune begins like this.'
      : `The oldest runes whose names begin with ${letters}: ${groupDigits(found.length)}.`;
  const unknown = [
    el('p', {}, 'This mirror has no rune ', el('code', { class: 'whole' }, id), '.'),
    el('p', { class: 'quiet' }, `It knows blocks ${formatHeights(manifest.heights)}.`),
  ];
  return {
    title: isName ? `Runes with ${id}` : `Rune ${id}`,
    said,
    nodes: [
      headOf(isName ? ['Runes with ', el('bdi', {}, id)] : 'No such rune'),
      ...(kind === 'rune' ? unknown : []),
      ...(isName ? [el('p', {}, said)] : []),
      ...(found.length === 0 ? [] : [tableOf('records runes-list', 'Runes, the oldest first', FOUND, [found])]),
      el('p', {}, linkTo(viewAt('runes', ''), 'All runes')),
      ...elsewhere(view),
    ],
  };
}
