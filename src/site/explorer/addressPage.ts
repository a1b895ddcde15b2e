/** The page of an address: its balances, its unspent outputs and its activity. */
import type { ActivityPage, Balance, BalancePage, OutputPage, UnspentOutput } from '../../serve/client/mirrorClient.ts';
import { shorten } from '../formatValues.ts';
import { el } from './dom.ts';
import { type Lists, type Page, pageWithLists, type Source } from './lists.ts';
import { copyButton, headOf, outputLink, runeLink } from './parts.ts';
import { activityTable, BLOCK_WIDTH, blockCell, byRuneName, RUNE_AMOUNT } from './table.ts';
import { type Column, sortable, tableOf } from './tableOf.ts';
import type { View } from './views.ts';

export async function addressPage(view: View, source: Source): Promise<Page> {
  const { mirror, manifest, signal } = source;
  const { id } = view;
  const has = manifest.lists ?? {};
  const path = `addresses/${encodeURIComponent(id)}`;
  const symbols = has.etchings && (async (rune: string) => (await mirror.etching(rune, signal))?.symbol);
  const lists: Lists = {
    balances: {
      path: `${path}/balances`,
      fetch: has.balances && ((window) => mirror.balances(id, { ...window, signal })),
      table: (shown: BalancePage) => balancesTable(shown, symbols),
      empty: 'This address has no runes.',
      missing: 'This mirror does not have balances. Mirrors have them if they have lists and all blocks since the first rune.',
      csv: 'balances',
    },
    outputs: {
      path: `${path}/outputs`,
      fetch: has.outputs && ((window) => mirror.outputs(id, { ...window, signal })),
      table: ({ results }: OutputPage) => outputsTable(results),
      empty: 'This address has no unspent outputs with runes.',
      missing: 'This mirror does not have outputs. Mirrors have them if they have lists and their data is from a Bitcoin Core node.',
      csv: 'outputs',
    },
    activity: {
      path: `${path}/activity`,
      fetch: has.address_activity && ((window) => mirror.addressActivity(id, { ...window, signal })),
      table: (shown: ActivityPage) => activityTable(shown, 'address'),
      empty: 'This mirror has no rune activity of this address.',
      missing: 'This mirror does not have activity by address. Mirrors have it in layout archive, or if they are built with --lists.',
      csv: 'activity',
    },
  };
  const head = [headOf('Address'), el('p', { class: 'subject' }, el('code', { class: 'whole' }, id), ' ', copyButton(id, 'address'))];
  return pageWithLists(view, `Address ${shorten(id)}`, lists, head, source);
}

type Symbols = (rune: string) => Promise<string | undefined>;

/** Renders balances, sorted by amount. The API sorts by smallest units, so runes with many decimals come first there. */
function balancesTable({ results, total }: BalancePage, symbols: Symbols | undefined): HTMLElement {
  const withSign = ({ rune }: Balance) => [symbols && signOf(rune.id, symbols), runeLink(rune)];
  const columns: readonly Column<Balance>[] = [{ name: 'Rune', cell: withSign, order: byRuneName }, ...RUNE_AMOUNT.slice(1)];
  const table = tableOf('records balances-list', 'Balances', columns, [results]);
  return sortable(table, columns, results, { first: 'Balance', isPart: results.length < total });
}

/** Shows the symbol of a rune as soon as it is fetched. Without the symbol, its place stays empty. */
function signOf(rune: string, symbols: Symbols): HTMLElement {
  const sign = el('bdi', { class: 'sign', 'aria-hidden': 'true' });
  symbols(rune).then(
    (symbol) => sign.append(symbol ?? ''),
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
