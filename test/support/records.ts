/** Invented activity records for tests. */
import { createHash } from 'node:crypto';
import { temporaryFolder, writeFiles } from './build.ts';

export interface Activity {
  rune: { id: string; number: number; name: string; spaced_name: string };
  address?: string;
  receiver_address?: string;
  amount?: string;
  operation: string;
  location: {
    block_hash: string;
    block_height: number;
    tx_id: string;
    tx_index: number;
    vout?: number;
    output?: string;
    timestamp: number;
  };
}

/** Returns 64 hex digits that depend only on the text. */
export const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns a record of a transaction, with the spelling and the key order of dialect `contract`. `more` replaces fields. */
export function record(
  height: number,
  txIndex: number,
  more: Partial<Omit<Activity, 'location'>> & { location?: Partial<Activity['location']> } = {},
): Activity {
  const { location, ...fields } = more;
  const txId = `0x${hex(`tx ${height} ${txIndex}`)}`;
  return {
    rune: { id: '840000:1', number: 1, name: 'TESTRUNE', spaced_name: 'TEST•RUNE' },
    address: 'bc1qexample',
    amount: '1.50',
    operation: 'receive',
    ...fields,
    location: {
      block_hash: `0x${hex(`block ${height}`)}`,
      block_height: height,
      tx_id: txId,
      tx_index: txIndex,
      vout: 0,
      output: txId,
      timestamp: 1_700_000_000 + height,
      ...location,
    },
  };
}

export const ndjson = (records: readonly unknown[]): string => records.map((r) => `${JSON.stringify(r)}\n`).join('');

/** Returns the words of a text, for long lists of texts without spaces. */
export const words = (text: string): string[] => text.split(/[ \n]+/).filter(Boolean);

/** Returns a folder with one valid input file. */
export function workFolder(): string {
  const work = temporaryFolder();
  writeFiles(work, { 'input/a.ndjson': ndjson([record(5, 1)]) });
  return work;
}
