/** Shows new blocks of the mirror, as long as the page is visible. */
import type { MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { formatHeights, groupDigits } from '../formatValues.ts';
import { byId } from './dom.ts';
import { announce } from './parts.ts';
import { mirror } from './requestMirror.ts';

/** Returns a text that changes with the data of the mirror. */
const stateOf = ({ digest, tip }: MirrorManifest): string => `${digest} ${tip?.hash ?? ''}`;

/** Time between two requests for the manifest. Without new data, the answer is a 304 without a body. */
const INTERVAL_MS = 30_000;

/**
 * Requests the manifest periodically. If the mirror has new data, calls `refresh` to show the new data, and then
 * updates the totals. If `refresh` resolves to false or rejects, calls it again after the next request.
 */
export function followMirror(refresh: () => Promise<boolean>): void {
  const figures = document.querySelector<HTMLElement>('.figures');
  let shown = figures?.dataset['state'];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    if (document.hidden) return;
    try {
      const manifest = await mirror.manifest();
      const state = stateOf(manifest);
      if (state !== shown && (await refresh())) {
        shown = state;
        updateFigures(figures, manifest);
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

/** Updates the totals, and announces a new highest block. */
function updateFigures(figures: Element | null, { records, transactions, blocks, tip, heights }: MirrorManifest): void {
  byId('heights').textContent = formatHeights(heights);
  const numbers = figures?.querySelectorAll('dd') ?? [];
  const highest = groupDigits(tip?.height ?? 0);
  const isNew = numbers[3]?.textContent !== highest;
  for (const [i, text] of [groupDigits(records), groupDigits(transactions), groupDigits(blocks), highest].entries())
    if (numbers[i] !== undefined) numbers[i].textContent = text;
  if (isNew) announce(`New block ${highest}`);
}
