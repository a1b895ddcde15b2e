/** Eleventy template of the first page of each transaction. */
import { bodyOf, pathOf } from '../records.mjs';

export const data = {
  pagination: { data: 'transactions', size: 1, alias: 'transaction' },
  permalink: ({ transaction }) => pathOf(transaction),
};

export const render = ({ transaction }) => bodyOf(transaction);
