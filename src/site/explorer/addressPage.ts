/** The page of an address: its balances and its activity. */
import type { Activity, Balance } from '../../serve/client/mirrorClient.ts';
import { shorten } from '../formatValues.ts';
import { el } from './dom.ts';
import { copyButton, runeLink } from './parts.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectParts } from './subjectLists.ts';
import { type Column, newestTable, tableOf } from './table.ts';
import type { SubjectView } from './views.ts';

export async function addressPage(view: SubjectView, { mirror, manifest, signal }: Source): Promise<DetailsPage> {
  const { id } = view;
  const has = manifest.lists ?? {};
  const path = `addresses/${encodeURIComponent(id)}`;
  const parts: SubjectParts = {
    balances: {
      path: `${path}/balances`,
      fetch: has.balances && ((window) => mirror.balances(id, { ...window, signal })),
      table: ({ results }) => tableOf('balances-list', 'Balances', BALANCES, [results as readonly Balance[]]),
      empty: 'This address has no runes.',
      missing: 'This mirror does not have balances. Mirrors have them if they have lists and all blocks since the first rune.',
    },
    activity: {
      path: `${path}/activity`,
      fetch: has.address_activity && ((window) => mirror.addressActivity(id, { ...window, signal })),
      table: ({ results }) => newestTable('address', results as readonly Activity[]),
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

const BALANCES: readonly Column<Balance>[] = [
  { name: 'Rune', cell: ({ rune }) => [runeLink(rune)] },
  { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)] },
  { name: 'Balance', amount: ({ balance }) => balance },
];
