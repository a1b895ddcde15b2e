/**
 * Computes rows from raw blocks by the rules of the protocol, and writes them as the files of a ledger export. Most rows have no address.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerRow, RuneRow } from '../../src/runes/ledgerRows.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import type { FakeBlock } from './fakeNode.ts';
import { MemoryChain, outpointOf } from './memoryLedger.ts';
import { blockBytes, messageScript, taproot } from './runeBlocks.ts';
import { memoryOf } from './runeChains.ts';

const [alice, bob] = [taproot(1), taproot(2)];
/** A script without an address. */
const nobody = Uint8Array.of(0x51);
const opReturn = Uint8Array.of(0x6a);

/**
 * Makes the rows of three blocks, with all types of rows that may lack an address: receives, sends in which one or both addresses are
 * missing, and burns with and without an output.
 */
export function rowsWithoutAddress(): { readonly ledger: readonly LedgerRow[]; readonly runes: readonly RuneRow[] } {
  const chain = new MemoryChain(NETWORKS.regtest);
  const runes: RuneRow[] = [];
  const add = (height: number, transactions: Parameters<typeof blockBytes>[1]) => {
    const { rows, changes } = chain.add(blockBytes(height, transactions), height);
    for (const { row } of changes.runes) runes.push(row);
    return rows.at(-1)?.tx_id ?? '';
  };
  const from = (...spent: [txid: string, output: number][]) => spent.map(([txid, output]) => ({ outpoint: outpointOf(txid, output) }));
  // Pays a premine of a rune with two decimals to Alice and to an output without an address. The rest burns in the output of the message.
  const etched = add(1, [
    {
      inputs: from(['11'.repeat(32), 0]),
      outputs: [messageScript([2, 1, 6, 157, 1, 2, 0, 0, 0, 100, 1, 0, 0, 50, 2, 0, 0, 0, 0]), alice, nobody],
    },
  ]);
  const moved = add(2, [
    // Etches a rune that can be minted three times. Each mint gives 7 units.
    { inputs: from(['22'.repeat(32), 0]), outputs: [messageScript([2, 3, 8, 3, 10, 7]), nobody] },
    {
      inputs: from([etched, 2], [etched, 1]),
      outputs: [messageScript([0, 1, 1, 70, 1, 0, 0, 40, 2, 0, 0, 15, 0, 0, 0, 1, 3]), bob, nobody, opReturn],
    },
  ]);
  add(3, [
    { inputs: from(['33'.repeat(32), 0]), outputs: [messageScript([20, 2, 20, 1]), nobody] },
    // A cenotaph burns the units that it spends and mints.
    { inputs: from([moved, 1], [moved, 2]), outputs: [messageScript([20, 2, 20, 1, 126, 0]), bob] },
  ]);
  return { ledger: chain.rows, runes };
}

/** Writes CSV like PostgreSQL: a missing value is an empty cell, and an empty text is quoted. */
export function csv(rows: readonly object[]): string {
  const cell = (value: unknown) => (value === null ? '' : value === '' || String(value).includes(',') ? `"${value}"` : String(value));
  const lines = rows.map((row) => Object.values(row).map(cell).join(','));
  return `${[Object.keys(rows[0] ?? {}).join(','), ...lines].join('\n')}\n`;
}

/** Returns the files of a ledger export with these rows. */
export const exportOf = ({ ledger, runes }: ReturnType<typeof rowsWithoutAddress>): Record<string, string> => ({
  'ledger.csv': csv(ledger),
  'runes.csv': csv(runes),
});

/** Returns an index of rows (contract/rowsSchemas.ts) without files, which says only which blocks were read. */
export const indexWith = (facts: object): string => JSON.stringify({ version: 1, ...facts, spent: true, runes: [], files: [] });

/** Writes the rows of a chain like a pull from a node: one file for each block. */
export function writeRows({ rows, ledger }: Pick<MemoryChain, 'rows' | 'ledger'>, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const files = new Map<string, string>([['runes.csv', csv([...ledger.byId.values()].map(({ row }) => row))]]);
  for (const height of new Set(rows.map((row) => row.block_height))) {
    files.set(`ledger-${height}.csv`, csv(rows.filter((row) => row.block_height === height)));
  }
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
}

/** Writes a chain as a pull from a node does. If `hasEnds` is false, the list of blocks has no empty blocks. */
export function writeChain(chain: readonly FakeBlock[], folder: string, hasEnds = true): void {
  writeRows(memoryOf(chain), folder);
  const known = chain.map(({ height, hash }) => ({ height, hash }));
  const ends = hasEnds ? { ends: known.slice(-150) } : {};
  const sources = [{ rules: 'ord', blocks: [[0, chain.length - 1]] }];
  writeFileSync(join(folder, 'index.json'), indexWith({ sources, tip: known.at(-1), network: 'regtest', ...ends }));
}

/** Returns a row with a changed list of spent outputs: one output is missing or has another address. */
export function changeSpent(row: LedgerRow, random: (below: number) => number): LedgerRow {
  if (row.spent === null) return row;
  const spent = row.spent.split(',');
  const at = random(spent.length);
  if (random(2) === 0) spent.splice(at, 1);
  else spent[at] = `${spent[at]?.split(':').slice(0, 2).join(':')}:bcrt1other${random(3)}`;
  return { ...row, spent: spent.join() || null };
}
