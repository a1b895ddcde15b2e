/** The one template of Eleventy's part: a page for each transaction, at its path. */
import { bodyOf, pathOf } from '../records.mjs';

export const data = {
  pagination: { data: 'transactions', size: 1, alias: 'transaction' },
  permalink: ({ transaction }) => pathOf(transaction),
};

export const render = ({ transaction }) => bodyOf(transaction);
