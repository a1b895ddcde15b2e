/** The pages of a rune, an address, an output and all runes: a separate bundle, which loads with the first such page. */
import { addressPage } from './addressPage.ts';
import type { Page, Source } from './lists.ts';
import { outputPage } from './outputPage.ts';
import { runePage } from './runePage.ts';
import { runesPage } from './runesPage.ts';
import type { View } from './views.ts';

/** Fetches and renders the page of a rune, an address, an output or all runes. Rejects with the client's errors. */
export async function pageOf(view: View, source: Source): Promise<Page> {
  if (view.kind === 'rune') return runePage(view, source);
  if (view.kind === 'address') return addressPage(view, source);
  return view.kind === 'output' ? outputPage(view, source) : runesPage(view, source);
}
