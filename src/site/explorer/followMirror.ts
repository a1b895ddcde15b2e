/** Shows new blocks of the mirror, as long as the page is visible. */
import { groupDigits } from '../formatValues.ts';
import { byId } from './dom.ts';
import { fetchOverview, showOverview } from './overview.ts';
import { announce } from './parts.ts';
import { forgetSearchFiles, mirror } from './requestMirror.ts';

/** Time between two requests for the manifest. Without new data, the answer is a 304 without a body. */
const INTERVAL_MS = 30_000;

/**
 * Requests the manifest periodically. If the mirror has new data, calls `refresh` to show the new data, and renews the overview. If
 * `refresh` resolves to false or rejects, calls it again after the next request. The overview follows later than other views if the host
 * sends an old page meanwhile.
 */
export function followMirror(refresh: () => Promise<boolean>): void {
  const overview = byId('overview');
  let shown = overview.dataset['state'];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    if (document.hidden) return;
    try {
      const { digest, tip } = await mirror.manifest();
      const hash = tip?.hash ?? '';
      const state = `${digest} ${hash}`;
      if (state !== shown) forgetSearchFiles();
      // Fetches the overview before `refresh` looks whether somebody uses the page, because this may change meanwhile.
      const fresh = state === overview.dataset['state'] ? undefined : await fetchOverview(state);
      const isNews = overview.hidden ? state !== shown : fresh !== undefined;
      if (isNews ? await refresh() : fresh !== undefined) {
        if (!shown?.endsWith(` ${hash}`)) announce(`New block ${groupDigits(tip?.height ?? 0)}`);
        shown = state;
        if (fresh !== undefined) await showOverview(fresh);
      }
    } catch {
      // The mirror may be unreachable, or its files are being replaced. The next request tries again.
    }
    clearTimeout(timer);
    timer = setTimeout(look, INTERVAL_MS);
  };
  document.addEventListener('visibilitychange', look);
  timer = setTimeout(look, INTERVAL_MS);
}
