/** Shares as percentages and bars. */
import { percent } from './amountMath.ts';
import { type Attributes, el } from './dom.ts';

/** Renders a share from 0 to 1 as a percentage and a bar. Empty for undefined. */
export const shareCell = (share: number | undefined): Node[] =>
  share === undefined ? [] : [el('span', {}, percent(share)), shareBar(share)];

/** Creates a bar that shows a share from 0 to 1. */
export const shareBar = (share: number): HTMLElement => barOf([[undefined, Math.min(Math.max(share, 0), 1)]], { class: 'bar-of share' });

/** Creates a bar of parts. A part has a `data-operation`, which sets its colour, and its share of the bar's full width. */
export const barOf = (parts: readonly (readonly [hue: string | undefined, share: number])[], attributes: Attributes = {}): HTMLElement =>
  el(
    'span',
    { class: 'bar-of', 'aria-hidden': 'true', ...attributes },
    ...parts.map(([hue, share]) => el('span', { 'data-operation': hue, style: `width:${(share * 100).toFixed(4)}%` })),
  );
