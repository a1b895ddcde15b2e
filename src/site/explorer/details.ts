/** The pages of runes and addresses, in a bundle that loads with the first such page. */
import { addressPage } from './addressPage.ts';
import { runePage } from './runePage.ts';
import type { DetailsPage, Source } from './subjectLists.ts';
import type { SubjectView } from './views.ts';

/** Fetches and renders the page of a rune or an address. Rejects with the client's errors. */
export const detailsPage = (view: SubjectView, source: Source): Promise<DetailsPage> =>
  view.kind === 'rune' ? runePage(view, source) : addressPage(view, source);
