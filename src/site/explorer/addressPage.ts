/**
 * The page of an address: what it has, and its activity.
 */
import type { Balance } from '../../client/index.ts';
import { shorten } from '../format.ts';
import { amountOf } from './amounts.ts';
import { el } from './dom.ts';
import { rangeOf } from './paging.ts';
import { copyButton, runeLink } from './parts.ts';
import type { Activity } from './source.ts';
import { type DetailsPage, fetchLists, listNodes, recordsTable, type Source, type SubjectParts, tableOf } from './subjectLists.ts';
import type { SubjectView } from './views.ts';

/** Fetches and renders the page of an address. Rejects with the client's errors. */
export async function addressPage(view: SubjectView, { mirror, manifest, signal }: Source): Promise<DetailsPage> {
  const { id } = view;
  const has = manifest.lists ?? {};
  const path = `addresses/${encodeURIComponent(id)}`;
  const parts: SubjectParts = {
    balances: {
      path: `${path}/balances`,
      fetch: has.balances && ((window) => mirror.balances(id, { ...window, signal })),
      table: ({ results }) => balancesTable(results as readonly Balance[]),
      empty: 'This address has no runes.',
      missing: 'This mirror does not have balances. Mirrors have them in layout archive, with all blocks since the first rune.',
    },
    activity: {
      path: `${path}/activity`,
      fetch: has.address_activity && ((window) => mirror.addressActivity(id, { ...window, signal })),
      table: ({ results }) => recordsTable('address', results as readonly Activity[]),
      empty: 'This mirror has no rune activity of this address.',
      missing: 'This mirror does not have activity by address. Mirrors have it in layout archive, or if they are built with --lists.',
    },
  };
  const lists = await fetchLists(view, parts);
  const title = `Address ${shorten(id)}`;
  return {
    title,
    said: lists.shown === undefined || lists.shown.results.length === 0 ? title : `Entries ${rangeOf(lists.shown)}`,
    nodes: [
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'Address')),
      el('p', { class: 'subject' }, el('code', { class: 'whole' }, id), ' ', copyButton(id, 'address')),
      ...listNodes(view, lists, parts),
    ],
  };
}

function balancesTable(balances: readonly Balance[]): HTMLElement {
  return tableOf(
    'Balances',
    'balances',
    [
      { name: 'Rune', cell: ({ rune }) => [runeLink(rune)] },
      { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)] },
      { name: 'Balance', isNumber: true, cell: ({ balance }) => [amountOf(balance)] },
    ],
    balances,
    balances.map(({ balance }) => balance),
  );
}
