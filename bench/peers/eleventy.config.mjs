/** Configures Eleventy. It reads the records with the same code as plain.mjs. The template is in site/. */
import { readTransactions } from './records.mjs';

export default function (config) {
  config.addGlobalData('transactions', () => readTransactions(process.env.PEERS_INPUT));
  // Without quiet mode, the benchmark would also measure the time to print a line per file.
  config.setQuietMode(true);
}
