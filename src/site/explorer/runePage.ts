/** The page of a rune: its names, supply, mint, holders and activity. */

import { type FoundRune, lettersOf } from '../../lists/searchFiles.ts';
import type { Etching, Holder, RuneActivityPage } from '../../serve/client/mirrorClient.ts';
import { count, formatHeights, groupDigits } from '../formatValues.ts';
import { alignmentOf, amountOf } from './alignedAmounts.ts';
import { percent, shareOf, unitsOf } from './amountMath.ts';
import { type Child, el } from './dom.ts';
import { mintOf, stateOfMint } from './mintState.ts';
import { addressLink, blockLink, copyButton, elsewhere, facts, linkTo, timeInFull, transactionLink } from './parts.ts';
import { type DetailsPage, pageWithLists, type Source, type SubjectParts, type Totals } from './subjectLists.ts';
import { type Column, newestTable, tableOf } from './table.ts';
import { runeView, type SubjectView } from './views.ts';

/** Known data of a rune. `etching` is undefined if the mirror has no etchings. */
interface Known {
  readonly id: string | undefined;
  readonly number: number | undefined;
  readonly spacedName: string | undefined;
  readonly etching: Etching | undefined;
}

export async function runePage(view: SubjectView, source: Source): Promise<DetailsPage> {
  const { mirror, manifest, signal } = source;
  const has = manifest.lists ?? {};
  const known = await knownRune(view.id, source);
  if (known === undefined) return unknownRune(view.id, source);
  const id = known.id ?? view.id;
  const path = `etchings/${encodeURIComponent(id).replaceAll('%3A', ':')}`;
  const supply = known.etching?.supply.current;
  const parts: SubjectParts = {
    activity: {
      path: `${path}/activity`,
      fetch: has.rune_activity && ((window) => mirror.runeActivity(id, { ...window, signal })),
      table: ({ results }) => newestTable('rune', results as RuneActivityPage['results']),
      empty: `This mirror has no activity of this rune. Its blocks with activity are ${formatHeights(manifest.heights)}.`,
      missing: 'This mirror does not have activity by rune. Mirrors have it in layout archive, or if they are built with --lists.',
    },
    holders: {
      path: `${path}/holders`,
      fetch: has.holders && ((window) => mirror.holders(id, { ...window, signal })),
      table: ({ results, offset }) => holdersTable(results as readonly Holder[], offset, supply),
      empty: 'No address has this rune.',
      missing: 'This mirror does not have holders. Mirrors have them if they have lists and all blocks since the first rune.',
    },
  };
  const name = known.spacedName ?? `Rune ${id}`;
  return pageWithLists(view, name, parts, (totals) => [...headOf(known, name), ...termsOf(known, totals, source)], mirror);
}

/** Finds a rune. Undefined if the mirror says that the rune does not exist. */
async function knownRune(id: string, { mirror, manifest, find, signal }: Source): Promise<Known | undefined> {
  if (manifest.lists?.etchings !== undefined) {
    const etching = await mirror.etching(id, signal);
    return etching && { id: etching.id, number: etching.number, spacedName: etching.spaced_name, etching };
  }
  // Without etchings, only the search files know all names. An id or a number may still have lists.
  const letters = lettersOf(id);
  if (letters === undefined) return { id: id.includes(':') ? id : undefined, number: undefined, spacedName: undefined, etching: undefined };
  const found = (await find(letters)).find(([spacedName]) => lettersOf(spacedName) === letters);
  return found && { id: found[1], number: found[2], spacedName: found[0], etching: undefined };
}

async function unknownRune(id: string, { find, manifest }: Source): Promise<DetailsPage> {
  const letters = lettersOf(id) ?? '';
  let near: readonly FoundRune[] = [];
  // Finds names that begin with as many of the letters as possible.
  for (let length = letters.length; length >= 2 && near.length === 0; length -= 1) near = await find(letters.slice(0, length));
  const shown = near.slice(0, 8).map(([spacedName, other]) => el('li', {}, linkTo(runeView(lettersOf(spacedName) ?? other), spacedName)));
  return {
    title: `Rune ${id}`,
    said: 'Nothing here',
    nodes: [
      el('div', { class: 'head' }, el('h1', { tabindex: '-1' }, 'No such rune')),
      el('p', {}, 'This mirror has no rune ', el('code', { class: 'whole' }, id), '.'),
      el('p', { class: 'quiet' }, `It has the blocks with activity at ${formatHeights(manifest.heights)}.`),
      ...(shown.length === 0 ? [] : [el('h2', {}, 'Similar names'), el('ul', { class: 'links' }, ...shown)]),
      elsewhere(runeView(id)),
    ],
  };
}

function headOf({ id, number, etching }: Known, name: string): Node[] {
  const symbol =
    etching === undefined || etching.symbol === '' ? undefined : el('bdi', { class: 'symbol', title: 'Symbol' }, etching.symbol);
  const location = etching?.location;
  const block = location?.block_height ?? (id === undefined ? undefined : Number(id.split(':')[0]));
  const head = el('div', { class: 'head' }, symbol, el('h1', { tabindex: '-1', class: 'name' }, name));
  const entries = facts([
    ['Id', id && el('span', { class: 'id' }, el('code', {}, id), copyButton(id, 'rune id'))],
    ['Number', number === undefined ? undefined : groupDigits(number)],
    ['Decimals', etching && String(etching.divisibility)],
    ['Etched in block', block === undefined ? undefined : blockLink(block)],
    // The rune that the protocol itself etched has no time and no transaction.
    ['Time', location && (location.timestamp === 0 ? 'genesis of runes' : timeInFull(location.timestamp))],
    ['Transaction', location && (/^(?:0x)?0+$/.test(location.tx_id) ? 'none: the protocol etched it' : transactionLink(location.tx_id))],
  ]);
  return [head, entries];
}

function termsOf({ etching }: Known, { holders }: Totals, { manifest }: Source): Node[] {
  if (etching === undefined)
    return [el('p', { class: 'note' }, 'This mirror has no etchings, so it does not know the supply and the terms of this rune.')];
  return [el('div', { class: 'columns terms' }, supplyOf(etching, holders), mintSection(etching, manifest))];
}

function supplyOf({ supply, divisibility, symbol }: Etching, holders: number | undefined): HTMLElement {
  const { current, premine, minted, burned } = supply;
  const units = (amount: string) => unitsOf(amount, divisibility);
  const created = minted === undefined ? undefined : String(units(premine) + units(minted));
  const row = (name: string, amount: string | undefined, hasShare = true) => {
    if (amount === undefined) return undefined;
    const share = created === undefined || !hasShare ? undefined : shareOf(String(units(amount)), created);
    return el(
      'tr',
      {},
      el('th', { scope: 'row' }, name),
      el('td', { class: 'number' }, amountOf(padded(amount, divisibility))),
      el('td', { class: 'number quiet', title: 'Of what was premined and minted' }, share === undefined ? undefined : percent(share)),
    );
  };
  const amounts = [current, premine, minted, burned].map((amount) => amount && padded(amount, divisibility));
  const rows = [row('Supply', current, false), row('Premined', premine), row('Minted', minted), row('Burned', burned)];
  const note = 'This mirror lacks older blocks, so it does not know what was minted and burned.';
  return el(
    'section',
    { 'aria-labelledby': 'supply-title' },
    // A symbol may be any character, even one that reverses the text direction.
    el('h2', { id: 'supply-title' }, ...(symbol === '' ? ['Supply'] : ['Supply in ', el('bdi', {}, symbol)])),
    el('table', { class: 'sums', style: alignmentOf(amounts) }, el('tbody', {}, ...rows)),
    created === undefined ? el('p', { class: 'quiet' }, note) : undefined,
    holders === undefined ? undefined : el('p', {}, `Held by ${count(holders, 'address', 'addresses')}.`),
  );
}

/** Adds trailing zeros, so that all amounts of a rune have its decimals. */
function padded(amount: string, decimals: number): string {
  const [whole = '', fraction = ''] = amount.split('.');
  return decimals === 0 ? whole : `${whole}.${fraction.padEnd(decimals, '0')}`;
}

function mintSection(etching: Etching, { tip, heights, dialect }: Source['manifest']): HTMLElement {
  const mint = mintOf(etching, dialect);
  const { total_mints, minted } = etching.supply;
  const section = (...children: readonly Child[]) =>
    el('section', { 'aria-labelledby': 'mint-title' }, el('h2', { id: 'mint-title' }, 'Mint'), ...children);
  if (mint === undefined) return section(el('p', {}, 'Nobody can mint this rune: it was etched without terms of mints.'));
  const { amount, cap, start, end } = mint;
  const mints = total_mints === undefined ? undefined : BigInt(total_mints);
  const { isOpen, text } = stateOfMint(mint, mints, tip?.height ?? heights.at(-1)?.[1] ?? 0);
  const share = mints === undefined || cap === undefined ? undefined : shareOf(String(mints), String(cap));
  const window = [
    start === undefined ? undefined : `from block ${groupDigits(start)}`,
    end === undefined ? undefined : `before block ${groupDigits(end)}`,
  ].filter((part) => part !== undefined);
  return section(
    el('p', { class: 'state', 'data-open': String(isOpen) }, text),
    share === undefined ? undefined : progressOf(share),
    facts([
      ['Mints so far', mints === undefined ? undefined : groupDigits(mints)],
      ['Cap', cap === undefined ? 'none' : groupDigits(cap)],
      ['Each mint', groupDigits(amount)],
      ['Minted', minted && groupDigits(minted)],
      ['Window', window.length === 0 ? 'any block' : window.join(', ')],
    ]),
  );
}

function progressOf(share: number): HTMLElement {
  const value = percent(share);
  const bar = el(
    'div',
    { class: 'progress', role: 'progressbar', 'aria-label': 'Mints of the cap', 'aria-valuetext': value },
    shareBar(share),
  );
  bar.setAttribute('aria-valuenow', (Math.min(share, 1) * 100).toFixed(2));
  return el('div', { class: 'minted' }, bar, el('span', {}, `${value} minted`));
}

function holdersTable(holders: readonly Holder[], offset: number, supply: string | undefined): HTMLElement {
  const share = ({ balance }: Holder) => (supply === undefined ? undefined : shareOf(balance, supply));
  const columns: readonly Column<Holder>[] = [
    { name: 'Rank', cell: (_, index) => [groupDigits(offset + index + 1)] },
    { name: 'Address', cell: ({ address }) => [addressLink(address)] },
    { name: 'Balance', amount: ({ balance }) => balance },
    { name: 'Share', isNumber: true, cell: (holder) => shareCell(share(holder)) },
  ];
  return tableOf('holders-list', 'Holders, the largest balance first', columns, [holders]);
}

const shareCell = (share: number | undefined): Node[] => (share === undefined ? [] : [el('span', {}, percent(share)), shareBar(share)]);

/** Creates a bar that shows a share from 0 to 1. */
function shareBar(share: number): HTMLElement {
  const width = `width:${Math.min(Math.max(share, 0), 1) * 100}%`;
  return el('span', { class: 'share', 'aria-hidden': 'true' }, el('span', { style: width }));
}
