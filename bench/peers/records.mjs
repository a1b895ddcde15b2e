/**
 * Reads the records with plain JavaScript. Eleventy and plain.mjs both use this code, and differ only in how they write
 * files.
 */
import { open } from 'node:fs/promises';

export const LIMIT = 20;

/**
 * Reads the transactions of an NDJSON file, in the order of the file: id, number of records, and the records of the
 * first page.
 */
export async function readTransactions(path) {
  const transactions = new Map();
  const file = await open(path);
  for await (const line of file.readLines()) {
    const record = withoutNulls(JSON.parse(line));
    withoutNulls(record.location);
    const id = record.location.tx_id;
    const known = transactions.get(id);
    if (known === undefined) transactions.set(id, { id, total: 1, results: [record] });
    else {
      known.total += 1;
      if (known.results.length < LIMIT) known.results.push(record);
    }
  }
  return [...transactions.values()];
}

/** Sets null values to undefined, which JSON.stringify omits. Deleting keys would make objects slow. */
function withoutNulls(object) {
  for (const key in object) if (object[key] === null) object[key] = undefined;
  return object;
}

export const pathOf = ({ id }) => `runes/v1/transactions/${id}.json`;

export const bodyOf = ({ total, results }) => JSON.stringify({ limit: LIMIT, offset: 0, total, results });
