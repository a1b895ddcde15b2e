/**
 * The pages of a rune, an address, an output and all runes: a separate bundle, which loads with the first such page.
 */
import { addressPage } from './addressPage.ts';
import { outputPage } from './outputPage.ts';
import { runePage } from './runePage.ts';
import { runesPage } from './runesPage.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import type { SubjectView } from './views.ts';

const PAGES = { rune: runePage, address: addressPage, output: outputPage, runes: runesPage } as const;

/** Fetches and renders the page of a rune, an address, an output or all runes. Rejects with the client's errors. */
export const detailsPage = (view: SubjectView, source: Source): Promise<DetailsPage> => PAGES[view.kind](view, source);
