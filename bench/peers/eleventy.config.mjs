/** Eleventy's part: the data is read by the code that plain.mjs reads it with, and site/ holds the template. */
import { readTransactions } from './records.mjs';

export default function (config) {
  config.addGlobalData('transactions', () => readTransactions(process.env.PEERS_INPUT));
  // A line on the terminal for each file would be measured too.
  config.setQuietMode(true);
}
