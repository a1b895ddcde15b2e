/**
 * The pages of runes and addresses, in a bundle that loads with the first of them.
 */
import type { Mirror, MirrorManifest } from '../../client/index.ts';
import type { FoundRune } from '../../pages/search.ts';
import { addressPage } from './addressPage.ts';
import { runePage } from './runePage.ts';
import type { SubjectView } from './views.ts';

/** How a page asks the mirror. */
export interface Source {
  readonly mirror: Mirror;
  readonly manifest: MirrorManifest;
  /** Finds runes by the first letters of their names. */
  readonly find: (letters: string) => Promise<readonly FoundRune[]>;
  readonly signal: AbortSignal;
}

/** A page that is ready to be shown. */
export interface DetailsPage {
  readonly title: string;
  /** Said to screen readers. */
  readonly said: string;
  readonly nodes: readonly Node[];
}

/** Fetches and renders the page of a rune or an address. Rejects with the client's errors. */
export const detailsPage = (view: SubjectView, source: Source): Promise<DetailsPage> =>
  view.kind === 'rune' ? runePage(view, source) : addressPage(view, source);
