/** Rows of the model in the form of input files. */
import { decimal, type Model, type TransactionRows } from '../rehearsal/model/model.ts';
import type { Row } from '../rehearsal/model/rows.ts';
import { type Rune, shownSymbol } from '../rehearsal/model/runes.ts';

/** Returns the files of a ledger export with these transactions, in the form of a node. */
export const filesOf = (model: Model, transactions: readonly TransactionRows[]): Record<string, string> => ({
  'runes.csv': runesOf(model),
  'ledger.csv': csv(transactions.flatMap((one) => ledgerRows(one, true))),
});

export const runesOf = (model: Model): string => csv(model.runes.map((rune) => runeRow(rune, model.block(rune.height).hash)));

export function ledgerRows({ height, blockHash, timestamp, txIndex, txid, rows, spent }: TransactionRows, hasSpent: boolean): object[] {
  return rows.map(({ eventIndex, operation, rune, address, receiver, amount, output }, i) => ({
    rune_id: rune,
    block_hash: blockHash,
    block_height: height,
    tx_index: txIndex,
    event_index: eventIndex,
    tx_id: txid,
    output,
    address,
    receiver_address: receiver,
    amount,
    operation,
    timestamp,
    ...(hasSpent ? { spent: i === 0 ? spent.join() || null : null } : {}),
  }));
}

export function flatRow(row: Row, { height, blockHash, timestamp, txIndex, txid }: TransactionRows, model: Model): object {
  const { id, number, letters, spacedName, divisibility } = model.rune(row.rune)!;
  return {
    ...{ rune_id: id, rune_number: number, rune_name: letters, rune_spaced_name: spacedName, address: row.address },
    ...{ receiver_address: row.receiver, amount: row.amount === null ? null : decimal(row.amount, divisibility) },
    ...{ operation: row.operation, block_hash: blockHash, block_height: height, tx_id: txid, tx_index: txIndex, vout: row.output },
    ...{ output: row.output === null ? null : `${txid}:${row.output}`, timestamp, event_index: row.eventIndex },
  };
}

export function runeRow({ terms, ...rune }: Rune, blockHash: string): object {
  return {
    ...{ id: rune.id, number: rune.number, name: rune.letters, spaced_name: rune.spacedName, block_hash: blockHash },
    ...{ block_height: rune.height, tx_index: rune.txIndex, tx_id: rune.txid, divisibility: rune.divisibility, premine: rune.premine },
    symbol: shownSymbol(rune),
    ...{ terms_amount: terms?.amount ?? null, terms_cap: terms?.cap ?? null },
    ...{ terms_height_start: terms?.heightStart ?? null, terms_height_end: terms?.heightEnd ?? null },
    ...{ terms_offset_start: terms?.offsetStart ?? null, terms_offset_end: terms?.offsetEnd ?? null },
    ...{ turbo: rune.turbo, cenotaph: rune.cenotaph, timestamp: rune.timestamp },
  };
}

/** Writes CSV like PostgreSQL: a missing value is an empty cell. */
export function csv(rows: readonly object[]): string {
  const cell = (value: unknown) =>
    value === null ? '' : /^$|[",]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : value;
  return [Object.keys(rows[0] ?? {}).join(), ...rows.map((row) => Object.values(row).map(cell).join()), ''].join('\n');
}
