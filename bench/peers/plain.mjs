/**
 * `node plain.mjs <history.ndjson> <folder>`: the shortest script that writes the first pages of all transactions, 64
 * at a time.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bodyOf, pathOf, readTransactions } from './records.mjs';

const [input, out] = process.argv.slice(2);
const transactions = await readTransactions(input);
await mkdir(join(out, dirname(pathOf(transactions[0]))), { recursive: true });

let next = 0;
const work = async () => {
  while (next < transactions.length) {
    const transaction = transactions[next++];
    await writeFile(join(out, pathOf(transaction)), bodyOf(transaction));
  }
};
await Promise.all(Array.from({ length: 64 }, work));
