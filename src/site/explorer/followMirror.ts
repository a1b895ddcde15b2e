/** Follows the new blocks of the mirror, as long as the page is visible. */
import type { MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { announce } from './parts.ts';
import { mirror } from './requestMirror.ts';

/** Time between two looks at the manifest. Without new data, a look costs an answer without a body (304). */
const INTERVAL_MS = 30_000;

/**
 * Looks at the manifest again and again. If the mirror has changed since the page was built, updates the totals and calls
 * `refresh`, which shows the new data. If `refresh` resolves to false or rejects, the next look calls it again.
 */
export function followMirror(refresh: () => Promise<boolean>): void {
  const figures = document.querySelector<HTMLElement>('.figures');
  let shown = figures?.dataset['state'];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    if (document.hidden) return;
    try {
      const manifest = await mirror.manifest();
      const state = `${manifest.digest} ${manifest.tip?.hash ?? ''}`;
      if (state !== shown && (await refresh())) {
        shown = state;
        updateFigures(figures, manifest);
      }
    } catch {
      // The mirror may be unreachable, or replace its files. The next look tries again.
    }
    clearTimeout(timer);
    timer = setTimeout(look, INTERVAL_MS);
  };
  document.addEventListener('visibilitychange', look);
  timer = setTimeout(look, INTERVAL_MS);
}

/** Updates the totals, and announces a new highest block. */
function updateFigures(figures: Element | null, { records, transactions, blocks, tip, heights }: MirrorManifest): void {
  const numbers = figures?.querySelectorAll('dd') ?? [];
  const highest = groupDigits(tip?.height ?? heights.at(-1)?.[1] ?? 0);
  const isNew = numbers[3]?.textContent !== highest;
  for (const [i, text] of [groupDigits(records), groupDigits(transactions), groupDigits(blocks), highest].entries())
    if (numbers[i] !== undefined) numbers[i].textContent = text;
  if (isNew) announce(`New block ${highest}`);
}
