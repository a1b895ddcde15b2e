/** The pages of runes, addresses and outputs, in a bundle that loads with the first such page. */
import { addressPage } from './addressPage.ts';
import { outputPage } from './outputPage.ts';
import { runePage } from './runePage.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import type { SubjectView } from './views.ts';

const PAGES = { rune: runePage, address: addressPage, output: outputPage };

/** Fetches and renders the page of a rune, an address or an output. Rejects with the client's errors. */
export const detailsPage = (view: SubjectView, source: Source): Promise<DetailsPage> => PAGES[view.kind](view, source);
