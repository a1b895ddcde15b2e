/** Renders amounts with aligned decimal points. */
import { groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { breakable } from './parts.ts';

/**
 * Maximum number of characters on each side of the decimal point. Longer integer parts wrap, and amounts with more decimals are not
 * aligned.
 */
const MOST = { whole: 20, fraction: 18 };

/** Splits an amount at the decimal point. Adds separators to its integer part. */
function partsOf(amount: string): { readonly whole: string; readonly fraction: string } {
  const [whole = '', fraction = ''] = groupDigits(amount).split('.');
  return { whole, fraction };
}

/**
 * Renders an amount after its sign, without zeros at the end of its decimals, which its title and the CSV file have. In a table with the
 * style of `alignmentOf`, decimal points are aligned.
 */
export function amountOf(amount: string, sign = ''): HTMLElement {
  const { whole, fraction } = partsOf(amount);
  // Only an integer part that is too long for a phone may wrap, after separators.
  const digits = whole.length <= MOST.whole ? [whole] : breakable(whole, /(?<=,)/);
  const decimals = el('span', { class: 'fraction quiet' }, fraction === '' ? undefined : `.${fraction}`);
  return el(
    'data',
    { value: amount, title: /\.\d*0$/.test(amount) ? amount : undefined, class: fraction.length > MOST.fraction ? undefined : 'aligned' },
    el('span', {}, sign, ...digits),
    decimals,
  );
}

/** Returns the style of a table with these amounts, which sets the width on each side of the decimal point. */
export function alignmentOf(amounts: readonly (string | undefined)[], hasSigns = false): string {
  const parts = amounts.flatMap((amount) => (amount === undefined ? [] : [partsOf(amount)]));
  const aligned = parts.filter(({ fraction }) => fraction.length <= MOST.fraction);
  // A separator is half as wide as a digit.
  const widthOf = (text: string) => text.length - (text.split(',').length - 1) / 2;
  const widest = (part: 'whole' | 'fraction') =>
    aligned.reduce((most, each) => Math.max(most, Math.min(widthOf(each[part]), MOST[part])), 0);
  const decimals = widest('fraction');
  return `--whole: ${widest('whole') + (hasSigns ? 1 : 0)}ch; --fraction: ${decimals === 0 ? '0px' : `calc(${decimals}ch + 0.3em)`}`;
}
