/**
 * The transactions of layout `files`: their names are those of the files in `transactions/`. A folder may hold millions, so it is read entry by entry.
 */
import type { Dirent } from 'node:fs';
import { spellHex } from '../pages/lists.ts';
import { PAGE_ENDING, TRANSACTIONS_FOLDER } from '../pages/paths.ts';
import { entriesOf } from '../write/entries.ts';
import { type Part, refuseDamaged } from './parts.ts';
import { twiceError } from './shards.ts';

/** The entries of a part's transactions, without any that no build made. */
export function* transactionsOf(part: Part): Generator<Dirent> {
  const form = new RegExp(`^${spellHex('', part.site.dialect)}[0-9a-f]{64}(?:${PAGE_ENDING})?$`);
  for (const entry of entriesOf(`${part.dir}/${TRANSACTIONS_FOLDER}`)) if (form.test(entry.name)) yield entry;
}

const ENDING = '.json';

/** The ids of a part's transactions. */
function* idsOf(part: Part): Generator<string> {
  for (const { name } of transactionsOf(part)) if (name.endsWith(ENDING)) yield name.slice(-64 - ENDING.length, -ENDING.length);
}

/** Digits of an id that a number holds exactly. */
const FINGERPRINT_DIGITS = 13;
const fingerprint = (id: string): number => Number.parseInt(id.slice(0, FINGERPRINT_DIGITS), 16);

/** Throws an InputError when a transaction is in two parts, or when a part has not as many as it says. Takes 8 bytes for each. */
export function checkTransactions(parts: readonly Part[]): void {
  const known = new Float64Array(parts.reduce((sum, part) => sum + part.manifest.transactions, 0));
  let at = 0;
  for (const part of parts) {
    const end = at + part.manifest.transactions;
    let count = 0;
    for (const id of idsOf(part)) {
      if (at < end) known[at++] = fingerprint(id);
      count += 1;
    }
    if (count !== part.manifest.transactions) {
      refuseDamaged(part.dir, `${TRANSACTIONS_FOLDER} has ${count} transactions, and its manifest says ${part.manifest.transactions}`);
    }
  }
  known.sort();
  const suspects = new Set(known.filter((number, i) => i > 0 && number === known[i - 1]));
  if (suspects.size > 0) compareSuspects(parts, suspects);
}

/** Looks at the whole ids of those whose beginnings are alike. */
function compareSuspects(parts: readonly Part[], suspects: ReadonlySet<number>): void {
  const holder = new Map<string, string>();
  const faults: string[] = [];
  for (const part of parts) {
    for (const id of idsOf(part)) {
      if (!suspects.has(fingerprint(id))) continue;
      const other = holder.get(id);
      if (other === undefined) holder.set(id, part.dir);
      else faults.push(`${id}: ${other} and ${part.dir}`);
    }
  }
  if (faults.length > 0) throw twiceError(faults.sort());
}
