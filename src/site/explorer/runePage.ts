/** The page of a rune: its names, supply, mint, holders and activity. */
import { lettersOf } from '../../lists/searchFiles.ts';
import { shiftDecimals } from '../../pages/decimalAmounts.ts';
import type { Etching, Holder, HolderPage, RuneActivityPage } from '../../serve/client/mirrorClient.ts';
import { count, formatHeights, groupDigits, relativeTime } from '../formatValues.ts';
import { addDecimals, percent, shareOf, unitsOf } from './amountMath.ts';
import { type Child, el } from './dom.ts';
import { type Lists, type Page, pageWithLists, type Source } from './lists.ts';
import { lastBlock, type Mint, mintOf } from './mintState.ts';
import {
  addressLink,
  blockLink,
  breakable,
  breakableDigits,
  copyButton,
  facts,
  shareBar,
  shareCell,
  timeInFull,
  titleOf,
  transactionLink,
} from './parts.ts';
import { runeSearchPage } from './runesPage.ts';
import { activityTable } from './table.ts';
import { type Column, tableOf } from './tableOf.ts';
import type { View } from './views.ts';

/** Number of largest holders whose share of the supply is shown together. */
const MOST_LARGEST = 10;

/** Known data of a rune. A mirror without etchings may know only what was looked up. */
interface Known {
  readonly id?: string | undefined;
  readonly number?: number;
  readonly spacedName?: string;
  readonly etching?: Etching;
}

export async function runePage(view: View, source: Source): Promise<Page> {
  const { mirror, manifest, signal } = source;
  const has = manifest.lists ?? {};
  const known = await knownRune(view.id, source);
  if (known === undefined) return runeSearchPage(view, source);
  const id = known.id ?? view.id;
  const path = `etchings/${encodeURIComponent(id).replaceAll('%3A', ':')}`;
  const supply = known.etching?.supply.current;
  // A failed request is ignored, because the page is complete without the share of the largest holders.
  const largest = has.holders && mirror.holders(id, { limit: MOST_LARGEST, signal }).catch(() => undefined);
  const lists: Lists = {
    activity: {
      path: `${path}/activity`,
      fetch: has.rune_activity && ((window) => mirror.runeActivity(id, { ...window, signal })),
      table: (shown: RuneActivityPage) => activityTable(shown, 'rune'),
      empty: `This mirror has no activity of this rune. It knows blocks ${formatHeights(manifest.heights)}.`,
      missing: 'This mirror does not have activity by rune. Mirrors have it in layout archive, or if they are built with --lists.',
      csv: 'rune_activity',
    },
    holders: {
      path: `${path}/holders`,
      fetch: has.holders && ((window) => mirror.holders(id, { ...window, signal })),
      table: (shown: HolderPage) => holdersTable(shown, supply),
      empty: 'No address has this rune.',
      missing: 'This mirror does not have holders. Mirrors have them if they have lists and all blocks since the first rune.',
      csv: 'holders',
    },
  };
  const name = known.spacedName ?? `Rune ${id}`;
  const head = async () => [...headOf(known, name), ...termsOf(known, source, await largest)];
  return pageWithLists(view, name, lists, head(), source);
}

/** Finds a rune. Undefined if the mirror says that the rune does not exist. */
async function knownRune(id: string, { mirror, manifest, findByLetters, signal }: Source): Promise<Known | undefined> {
  if (manifest.lists?.etchings !== undefined) {
    const etching = await mirror.etching(id, signal);
    return etching && { id: etching.id, number: etching.number, spacedName: etching.spaced_name, etching };
  }
  // A mirror without etchings finds runes only by name, in its search files. So any id or number is accepted, because the mirror may have
  // lists of this rune.
  const letters = lettersOf(id);
  if (letters === undefined) return { id: id.includes(':') ? id : undefined };
  const found = (await findByLetters(letters)).find(([spacedName]) => lettersOf(spacedName) === letters);
  return found && { id: found[1], number: found[2], spacedName: found[0] };
}

function headOf({ id, number, etching }: Known, name: string): Node[] {
  const symbol = etching === undefined || etching.symbol === '' ? undefined : el('bdi', { class: 'sign', title: 'Symbol' }, etching.symbol);
  const location = etching?.location;
  const block = location?.block_height ?? (id === undefined ? undefined : Number(id.split(':')[0]));
  const head = el('div', { class: 'head' }, symbol, titleOf(breakable(name)));
  const entries = facts([
    ['Id', id && el('span', { class: 'id' }, el('code', {}, id), copyButton(id, 'rune id'))],
    ['Number', number === undefined ? undefined : groupDigits(number)],
    ['Decimals', etching && String(etching.divisibility)],
    ['Etched in block', block === undefined ? undefined : blockLink(block)],
    // The rune that the protocol itself etched has no time and no transaction.
    ['Time', location && (location.timestamp === 0 ? 'genesis of runes' : timeInFull(location.timestamp))],
    ['Transaction', location && (/^(?:0x)?0+$/.test(location.tx_id) ? 'none: the protocol etched it' : transactionLink(location.tx_id))],
    ['Turbo', etching && el('span', { title: 'Whether it opted in to future changes of the protocol' }, etching.turbo ? 'yes' : 'no')],
  ]);
  return [head, entries];
}

function termsOf({ etching }: Known, { manifest }: Source, largest: HolderPage | undefined): Node[] {
  if (etching === undefined)
    return [el('p', { class: 'note' }, 'This mirror has no etchings, so it does not know the supply and the terms of this rune.')];
  const mint = mintOf(etching, manifest);
  const heldBy = largest && el('p', {}, heldByText(largest, etching.supply.current));
  return [el('div', { class: 'columns terms' }, supplySection(etching, mint, heldBy), mintSection(etching, mint, manifest))];
}

/** Describes the holders: number, share of the ten largest, and as of which block if this is not the highest one. */
function heldByText({ total, results, block_height }: HolderPage, supply: string | undefined): string {
  const share = total <= MOST_LARGEST ? undefined : shareOf(addDecimals(results.map(({ balance }) => balance)), supply);
  const largest = share === undefined ? '' : `, ${percent(share)} by the ten largest`;
  const block = block_height === undefined ? '' : `, as of block ${groupDigits(block_height)}`;
  return `Held by ${count(total, 'address', 'addresses')}${largest}${block}.`;
}

function section(title: string, ...children: readonly Child[]): HTMLElement {
  const id = `${title.toLowerCase()}-title`;
  return el('section', { 'aria-labelledby': id }, el('h2', { id }, title), ...children);
}

function supplySection({ supply, divisibility }: Etching, mint: Mint | undefined, heldBy: HTMLElement | undefined): HTMLElement {
  const { current, premine, minted, burned } = supply;
  const created = minted === undefined ? undefined : addDecimals([premine, minted]);
  const left = mint?.left === undefined ? 0n : mint.left * unitsOf(mint.amount, divisibility);
  /** Shows an amount, and its share of what was premined and minted. */
  const part = (amount: string | undefined) => {
    if (amount === undefined) return undefined;
    const share = shareOf(amount, created);
    return el(
      'span',
      {},
      ...breakableDigits(amount),
      ' ',
      share === undefined ? undefined : el('span', { class: 'quiet' }, percent(share)),
    );
  };
  return section(
    'Supply',
    facts([
      ['Current', current && el('strong', {}, ...breakableDigits(current))],
      ['Premined', part(premine)],
      ['Minted', part(minted)],
      ['Burned', part(burned)],
      [mint?.isOver ? 'Never minted' : 'Left to mint', left === 0n ? undefined : groupDigits(shiftDecimals(left, divisibility))],
    ]),
    created === undefined
      ? el('p', { class: 'quiet' }, 'This mirror lacks older blocks, so it does not know what was minted and burned.')
      : undefined,
    heldBy,
  );
}

function mintSection({ supply }: Etching, mint: Mint | undefined, { tip }: Source['manifest']): HTMLElement {
  if (mint === undefined) return section('Mint', el('p', {}, 'Nobody can mint this rune: it was etched without terms of mints.'));
  const { amount, cap, start, mints, left, share, isOpen, text } = mint;
  const highest = tip?.height ?? 0;
  return section(
    'Mint',
    el('p', { class: 'state', 'data-open': String(isOpen) }, text),
    share === undefined ? undefined : el('p', {}, `${percent(share)} minted`, shareBar(share)),
    facts([
      ['Mints so far', mints === undefined ? undefined : groupDigits(mints)],
      ['Mints left', left === undefined ? undefined : groupDigits(left)],
      ['Cap', cap === undefined ? 'none' : groupDigits(cap)],
      ['Each mint', groupDigits(amount)],
      ['Minted', supply.minted && groupDigits(supply.minted)],
      ['First block', heightOf(start ?? 'no limit', highest)],
      ['Last block', heightOf(lastBlock(mint), highest)],
    ]),
  );
}

/** Shows a height, or text in place of one: a link if the chain has it, otherwise the time until then, at ten minutes for each block. */
function heightOf(height: bigint | string, highest: number): Node | string {
  if (typeof height === 'string') return height;
  if (height <= highest) return blockLink(Number(height));
  return `${groupDigits(height)}, ${relativeTime((Number(height) - highest) * 600, 0).replace(/^in /, 'in about ')}`;
}

function holdersTable({ results, offset }: HolderPage, supply: string | undefined): HTMLElement {
  const columns: readonly Column<Holder>[] = [
    { name: 'Rank', width: '4rem', cell: (_, index) => [el('span', { class: 'quiet' }, groupDigits(offset + index + 1))] },
    { name: 'Address', cell: ({ address }) => [addressLink(address)] },
    { name: 'Balance', amount: ({ balance }) => balance },
    { name: 'Share', width: '9rem', isNumber: true, cell: ({ balance }) => shareCell(shareOf(balance, supply)) },
  ];
  return tableOf('records holders-list', 'Holders, the largest balance first', columns, [results]);
}
