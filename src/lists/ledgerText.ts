/**
 * Renders the text of the ledger after a block, `rune-ledger/1`: all runes and all unspent outputs with runes. Two
 * mirrors that agree about all runes and outputs have the same SHA-256 of this text. docs/ledger.md describes the text,
 * so that other programs can compute the digest.
 */
import type { LedgerPoint } from '../format/listTables.ts';
import type { Counts, Etching } from './etchings.ts';
import type { LedgerOutput } from './ledgerOutputs.ts';

/** Version of ord's rules in this program. It must change if the same blocks give another ledger than before. */
const RULES = 'ord-1';

const line = (fields: readonly (string | number | boolean | null)[]): string => `${fields.map((field) => field ?? '').join('\t')}\n`;

export const ledgerHead = (network: string, { height, hash }: Omit<LedgerPoint, 'digest'>): string =>
  line(['rune-ledger/1']) + line(['network', network]) + line(['rules', RULES]) + line(['block', height, hash]);

/** Returns the line of a rune. Throws for a rune without counts. */
export function runeLine(rune: Omit<Etching, 'counts'>, counts: Pick<Counts, 'mints' | 'burns' | 'burned'>): string {
  const symbol = [...rune.symbol].map((character) => (character.codePointAt(0) ?? 0).toString(16)).join(' ');
  const { terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end } = rune;
  return line([
    ...['rune', rune.number, rune.id, rune.name, rune.spaced_name, rune.divisibility, symbol, rune.turbo],
    ...[terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end, rune.premine],
    ...[rune.block_height, rune.block_hash, rune.tx_index, rune.tx_id, rune.timestamp],
    ...[counts.mints, String(counts.burned), counts.burns],
  ]);
}

export function outputLine({ output, place: [height, , txIndex], address, runes }: LedgerOutput): string {
  const sorted = runes.length > 1 ? [...runes].sort(([a], [b]) => compareIds(a, b)) : runes;
  let held = '';
  for (const [id, units] of sorted) held += `\t${id}:${units}`;
  return `output\t${output}\t${height}\t${txIndex}\t${address ?? '-'}${held}\n`;
}

/** Compares rune ids, `block:tx`, by block and then by transaction. */
function compareIds(a: string, b: string): number {
  const [[block = 0, tx = 0], [otherBlock = 0, otherTx = 0]] = [a, b].map((id) => id.split(':').map(Number)) as [number[], number[]];
  return block - otherBlock || tx - otherTx;
}
