/** Shares as percentages and bars. */
import { percent } from './amountMath.ts';
import { el } from './dom.ts';

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
