/** The page of an address: its balances, its unspent outputs and its activity. */
import type { Activity, Balance, UnspentOutput } from '../../serve/client/mirrorClient.ts';
import { shorten } from '../formatValues.ts';
import { el } from './dom.ts';
import { copyButton, outputLink } from './parts.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectParts } from './subjectLists.ts';
import { blockCell, type Column, newestTable, RUNE_AMOUNT, tableOf } from './table.ts';
import type { SubjectView } from './views.ts';

export async function addressPage(view: SubjectView, { mirror, manifest, signal }: Source): Promise<DetailsPage> {
  const { id } = view;
  const has = manifest.lists ?? {};
  const path = `addresses/${encodeURIComponent(id)}`;
  const parts: SubjectParts = {
    balances: {
      path: `${path}/balances`,
      fetch: has.balances && ((window) => mirror.balances(id, { ...window, signal })),
      table: ({ results }) => tableOf('balances-list', 'Balances', RUNE_AMOUNT, [results as readonly Balance[]]),
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
      table: ({ results, offset }) => newestTable('address', results as readonly Activity[], offset),
      empty: 'This mirror has no rune activity of this address.',
      missing: 'This mirror does not have activity by address. Mirrors have it in layout archive, or if they are built with --lists.',
    },
  };
  return pageWithLists(
    view,
    `Address ${shorten(id)}`,
    parts,
    () => [
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Address')),
      el('p', { class: 'subject' }, el('code', { class: 'whole' }, id), ' ', copyButton(id, 'address')),
    ],
    mirror,
  );
}

type RuneOfOutput = UnspentOutput & UnspentOutput['runes'][number];

/** Shows a row for each rune. Only the first row of an output names the output and its block. */
const OUTPUT_COLUMNS: readonly Column<RuneOfOutput>[] = [
  { name: 'Output', cell: ({ output }, index) => (index === 0 ? [outputLink(output.replace(/^0x/, ''))] : []) },
  ...RUNE_AMOUNT.filter(({ name }) => name !== 'Rune id'),
  { name: 'Block', cell: (entry, index) => (index === 0 ? blockCell(entry) : []) },
];

const outputsTable = (outputs: readonly UnspentOutput[]): HTMLElement => {
  const groups = outputs.map((output) => output.runes.map((rune) => ({ ...output, ...rune })));
  return tableOf('outputs-list', 'Unspent outputs, the newest first', OUTPUT_COLUMNS, groups);
};
