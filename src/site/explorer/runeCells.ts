/** Cells of tables of runes. */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { type Child, el } from './dom.ts';
import { runeLink } from './parts.ts';

/** Shows the symbol, if it is known, the name and the id of a rune. */
export const nameCell = (rune: Rune & { readonly symbol?: string }): readonly Child[] => [
  rune.symbol === undefined ? undefined : el('bdi', { class: 'sign', 'aria-hidden': 'true' }, rune.symbol),
  runeLink(rune),
  ' ',
  el('code', { class: 'quiet', title: 'Rune id' }, rune.id),
];
