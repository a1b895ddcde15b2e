/** The page of an address: its balances, its unspent outputs and its activity. */
import type { Activity, Balance, UnspentOutput } from '../../serve/client/mirrorClient.ts';
import { shorten } from '../formatValues.ts';
import { compareAmounts } from './amountMath.ts';
import { el } from './dom.ts';
import { copyButton, outputLink, runeLink } from './parts.ts';
import { byName, type Compare, sortable } from './sortable.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectParts } from './subjectLists.ts';
import { activityTable, BLOCK_WIDTH, blockCell, RUNE_AMOUNT } from './table.ts';
import { type Column, tableOf } from './tableOf.ts';
import type { ListWindow } from './transfers.ts';
import type { SubjectView } from './views.ts';

export async function addressPage(view: SubjectView, { mirror, manifest, signal }: Source): Promise<DetailsPage> {
  const { id } = view;
  const has = manifest.lists ?? {};
  const path = `addresses/${encodeURIComponent(id)}`;
  const symbols = has.etchings && (async (rune: string) => (await mirror.etching(rune, signal))?.symbol);
  const parts: SubjectParts = {
    balances: {
      path: `${path}/balances`,
      fetch: has.balances && ((window) => mirror.balances(id, { ...window, signal })),
      table: ({ results, total }) => balancesTable(results as readonly Balance[], total, symbols),
      empty: 'This address has no runes.',
      missing: 'This mirror does not have balances. Mirrors have them if they have lists and all blocks since the first rune.',
    },
    outputs: {
      path: `${path}/outputs`,
      fetch: has.outputs && ((window) => mirror.outputs(id, { ...window, signal })),
      table: ({ results }) => outputsTable(results as readonly UnspentOutput[]),
      empty: 'This address has no unspent outputs with runes.',
      missing: 'This mirror does not have outputs. Mirrors have them if they have lists and their data is from a Bitcoin Core node.',
    },
    activity: {
      path: `${path}/activity`,
      fetch: has.address_activity && ((window) => mirror.addressActivity(id, { ...window, signal })),
      table: (shown) => activityTable(shown as ListWindow<Activity>, 'address'),
      empty: 'This mirror has no rune activity of this address.',
      missing: 'This mirror does not have activity by address. Mirrors have it in layout archive, or if they are built with --lists.',
    },
  };
  const head = [
    el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Address')),
    el('p', { class: 'subject' }, el('code', { class: 'whole' }, id), ' ', copyButton(id, 'address')),
  ];
  return pageWithLists(view, `Address ${shorten(id)}`, parts, head, mirror);
}

/** Fetches the symbol of a rune by its id. */
type Symbols = (rune: string) => Promise<string | undefined>;

const idOf = ({ rune }: Balance): readonly [height: number, index: number] => {
  const [height, index] = rune.id.split(':').map(Number);
  return [height ?? 0, index ?? 0];
};

/** Orders that a reader may choose. The API sorts by smallest units, so runes with many decimals come first there. */
const BALANCE_ORDERS: Readonly<Record<string, Compare<Balance>>> = {
  Rune: (a, b) => byName(a.rune, b.rune),
  'Rune id': (a, b) => idOf(a)[0] - idOf(b)[0] || idOf(a)[1] - idOf(b)[1],
  Balance: (a, b) => compareAmounts(a.balance, b.balance),
};

function balancesTable(balances: readonly Balance[], total: number, symbols: Symbols | undefined): HTMLElement {
  const columns: readonly Column<Balance>[] = [
    { name: 'Rune', cell: ({ rune }) => [symbols && signOf(rune.id, symbols), runeLink(rune)] },
    ...RUNE_AMOUNT.slice(1),
  ];
  const table = tableOf('records balances-list', 'Balances', columns, [balances]);
  return sortable(table, balances, BALANCE_ORDERS, { first: 'Balance', isPart: balances.length < total });
}

/** Shows the symbol of a rune as soon as it is fetched. Without the symbol, its place stays empty. */
function signOf(rune: string, symbols: Symbols): HTMLElement {
  const sign = el('bdi', { class: 'sign', 'aria-hidden': 'true' });
  symbols(rune).then(
    (symbol) => {
      sign.textContent = symbol ?? '';
    },
    () => undefined,
  );
  return sign;
}

type RuneOfOutput = UnspentOutput & UnspentOutput['runes'][number];

/** There is a row for each rune of an output. Only the first of these rows shows the output and its block. */
const OUTPUT_COLUMNS: readonly Column<RuneOfOutput>[] = [
  { name: 'Output', cell: ({ output }, index) => (index === 0 ? [outputLink(output.replace(/^0x/, ''))] : []) },
  ...RUNE_AMOUNT.filter(({ name }) => name !== 'Rune id'),
  { name: 'Block', width: BLOCK_WIDTH, cell: (entry, index) => (index === 0 ? blockCell(entry) : []) },
];

const outputsTable = (outputs: readonly UnspentOutput[]): HTMLElement => {
  const groups = outputs.map((output) => output.runes.map((rune) => ({ ...output, ...rune })));
  return tableOf('records outputs-list', 'Unspent outputs, the newest first', OUTPUT_COLUMNS, groups);
};
