/** Configures Eleventy. It reads the data with the same code as plain.mjs; the template is in site/. */
import { readTransactions } from './records.mjs';

export default function (config) {
  config.addGlobalData('transactions', () => readTransactions(process.env.PEERS_INPUT));
  // Otherwise the benchmark would also measure the time to print a line per file.
  config.setQuietMode(true);
}
