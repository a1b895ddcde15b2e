/** Small parts that several views share. */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits, isoTime, localTime, relativeTime, utc } from '../formatValues.ts';
import { percent } from './amountMath.ts';
import { type Attributes, type Child, el } from './dom.ts';
import { BASE, NETWORK } from './settings.ts';
import { searchOf, type View, viewAt, viewOfRune } from './views.ts';

/** Creates a link to a view. main.ts handles its clicks without a page load. */
export const linkTo = (view: View, text: string | readonly Child[], more: Attributes = {}): HTMLAnchorElement =>
  el('a', { href: searchOf(view), ...more }, ...[text].flat());

/** Returns the head of a page. The focus moves to its title when the page is shown. */
export const headOf = (title: string | readonly Child[]): HTMLElement => el('div', { class: 'head' }, titleOf(title));

export const titleOf = (title: string | readonly Child[]): HTMLElement => el('h1', { tabindex: '-1', class: 'name' }, ...[title].flat());

export const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

/** Returns links to the same id at other Bitcoin explorers. Empty if they do not have it or do not cover the network. */
export function elsewhere({ kind, id }: View): HTMLElement[] {
  if (NETWORK === undefined || NETWORK === 'regtest' || kind === 'runes') return [];
  const bare = encodeURIComponent(id.replace(/^0x/, '')).replace('%3A', ':');
  const path = `${kind === 'transaction' ? 'tx' : kind}/${bare}`;
  const link = (host: string, to: string) => el('a', { href: `https://${to}`, rel: 'noreferrer' }, host);
  const [folder, subdomain] = NETWORK === 'main' ? ['', ''] : [`${NETWORK}/`, `${NETWORK}.`];
  const outputAt = kind === 'output' ? `tx/${bare.replace(':', '#vout=')}` : path;
  const others = kind === 'rune' ? [] : [link('mempool.space', `mempool.space/${folder}${outputAt}`), ' and '];
  return [
    el('p', { class: 'quiet' }, `This ${kind} at other explorers: `, ...others, link('ordinals.com', `${subdomain}ordinals.com/${path}`)),
  ];
}

export const blockLink = (height: number): HTMLAnchorElement => linkTo(viewAt('block', String(height)), groupDigits(height));

/** Splits a text, so that a line may end after each spacer of a rune's name, or at another place. */
export const breakable = (text: string, places = /(?<=•)/): Child[] =>
  text.split(places).flatMap((part, i) => (i === 0 ? [part] : [el('wbr'), part]));

/** Groups the digits of an amount, so that a line may end between groups: the largest have 52 characters. */
export const breakableDigits = (amount: string): Child[] => breakable(groupDigits(amount), /(?<=,)/);

export const runeLink = (rune: Pick<Rune, 'id' | 'name' | 'spaced_name'>): HTMLAnchorElement =>
  linkTo(viewOfRune(rune), breakable(rune.spaced_name), { class: 'rune' });

export const nameCell = (rune: Rune & { readonly symbol?: string | undefined }): readonly Child[] => [
  rune.symbol === undefined ? undefined : el('bdi', { class: 'sign', 'aria-hidden': 'true' }, rune.symbol),
  runeLink(rune),
  ' ',
  el('code', { class: 'quiet', title: 'Rune id' }, rune.id),
];

/** Renders a share from 0 to 1 as a percentage and a bar. Empty for undefined. */
export const shareCell = (share: number | undefined): Node[] =>
  share === undefined ? [] : [el('span', {}, percent(share)), shareBar(share)];

/** Creates a bar that shows a share from 0 to 1. */
export const shareBar = (share: number): HTMLElement =>
  el(
    'span',
    { class: 'bar-of share', 'aria-hidden': 'true' },
    el('span', { style: `width:${(Math.min(Math.max(share, 0), 1) * 100).toFixed(4)}%` }),
  );

export const transactionLink = (txId: string): HTMLElement => idWithCopy(txId, 'transaction id', 'transaction');

/** Shows a shortened address as a link to its page. `what` names the address for the copy button. */
export const addressLink = (address: string, what = 'address'): HTMLElement => idWithCopy(address, what, 'address');

/** Shows an outpoint as a link to its page. `shown` replaces the outpoint. */
export const outputLink = (outpoint: string, shown?: string): HTMLElement => idWithCopy(outpoint, 'output', 'output', shown);

/** Number of last characters of an id that are always shown. */
const TAIL = 6;

/**
 * Shows an id, or `shown` instead, with the full id as its title and a copy button. If there is no room, CSS cuts the id before its last
 * characters. With the kind of its page, it is a link. `what` completes the button's name, `Copy the …`.
 */
export function idWithCopy(id: string, what: string, kind?: View['kind'], shown = id): HTMLElement {
  const start = shown.slice(0, -TAIL);
  const cut = start === '' ? undefined : el('span', { class: 'cut' }, start);
  const code = el('code', { title: id }, cut, el('span', {}, shown.slice(-TAIL)));
  return el('span', { class: 'id' }, kind === undefined ? code : linkTo(viewAt(kind, id), [code]), copyButton(id, what));
}

/** Shows names and values. Omits undefined values. */
export function facts(entries: readonly (readonly [name: string, value: Node | string | undefined])[]): HTMLElement {
  const known = entries.filter(([, value]) => value !== undefined);
  return el(
    'dl',
    { class: 'facts' },
    ...known.map(([name, value]) =>
      el('div', {}, el('dt', {}, name), el('dd', {}, ...(typeof value === 'string' ? breakable(value, /(?<=,)/) : [value]))),
    ),
  );
}

/** Shows a relative time, then the exact time in UTC and in the reader's time zone. Takes seconds since 1970. */
export const timeInFull = (timestamp: number): HTMLElement => timeOf(timestamp, ' ', el('span', { class: 'quiet' }, exactTime(timestamp)));

const exactTime = (timestamp: number): string => [utc(timestamp), localTime(timestamp)].filter((each) => each !== undefined).join(' · ');

/** Statuses of hosts without code: the file may be missing (403), is missing (404), or the request needs code (501). */
const UNANSWERED = [403, 404, 501];

/** Results by kind of request, because some hosts, such as nginx and Caddy, answer only some kinds. */
const known = new Map<string, Promise<boolean>>();

/**
 * Resolves to true if the host answers requests of this kind, or cannot be reached. GitHub Pages and buckets have only the files. Sends
 * only the first request of each kind. `target` must be in the mirror, because a 404 is taken for the answer of a host without code.
 */
export function isAnswered(target: string): Promise<boolean> {
  const kind = target.split('/')[2] ?? '';
  const answer =
    known.get(kind) ??
    fetch(new URL(target, BASE), { method: 'HEAD' }).then(
      ({ status }) => !UNANSWERED.includes(status),
      () => true,
    );
  known.set(kind, answer);
  return answer;
}

export const onlyFiles = (): HTMLElement =>
  el(
    'p',
    { class: 'quiet' },
    'This host has only files and does not answer requests of the API. Programs read the files with the ',
    el('a', { href: new URL('client.js', BASE).href }, 'client module'),
    '.',
  );

/** Shows the curl command of an API target, a link to its JSON or `file`, and `more`. On a host without code, only what works there. */
export function apiSource(target: string, file = target, more?: HTMLElement): HTMLElement {
  const source = el('section', { class: 'source', 'aria-label': 'The same from the API' }, ...requestTo(target, file), more);
  void isAnswered(target).then((isHere) => {
    if (isHere) return;
    const working = file === target ? [onlyFiles()] : requestTo(file, file);
    source.replaceChildren(...[...working, more].filter((each) => each !== undefined));
  });
  return source;
}

function requestTo(target: string, file: string): Child[] {
  const command = `curl '${new URL(target, BASE).href.replaceAll("'", '%27')}'`;
  return [
    el('code', { class: 'command' }, command),
    copyButton(command, 'command'),
    el('a', { href: new URL(file, BASE).href }, 'Raw JSON'),
  ];
}

const COPY_ICON =
  '<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.4"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5"/></svg>';

/** Creates a button that copies a text, `Copy the …`. Undefined without a clipboard: browsers have it only on https and localhost. */
export function copyButton(text: string, what: string): HTMLButtonElement | undefined {
  if (navigator.clipboard === undefined) return undefined;
  const button = el('button', { type: 'button', class: 'copy', 'aria-label': `Copy the ${what}`, title: `Copy the ${what}` });
  button.innerHTML = COPY_ICON;
  button.addEventListener('click', async () => {
    const said = await navigator.clipboard.writeText(text).then(
      () => ['Copied', `Copied the ${what}`] as const,
      () => ['Not copied', `This browser does not let the page copy the ${what}`] as const,
    );
    button.dataset['said'] = said[0];
    announce(said[1]);
    setTimeout(() => delete button.dataset['said'], 1600);
  });
  return button;
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  const region = document.getElementById('announcement');
  if (region !== null) region.textContent = text;
}

/** Shows a relative time, with the exact time as its title. `timestamp` is in seconds since 1970. */
export function timeOf(timestamp: number, ...more: readonly Child[]): HTMLElement {
  const now = Date.now() / 1000;
  return el('time', { datetime: isoTime(timestamp) || undefined, title: exactTime(timestamp) }, relativeTime(timestamp, now), ...more);
}
