/**
 * A record as the dialect `contract` spells it, made of a parsed one. There are two makers of this text. Builds render millions of records in SQL
 * (render/recordSql.ts), because DuckDB does it on all cores. Pulls and `npm run verify` have parsed records and no database, and use this one.
 * test/verify.test.ts and test/pullMirror.test.ts hold the two together: both compare digests of one with digests of the other.
 */
import type { Operation } from '../pages/lists.ts';

/** A record of either dialect that was checked. Null counts as no value. */
export interface ActivityRecord {
  readonly rune: { readonly id: string; readonly number: number; readonly name: string; readonly spaced_name: string };
  readonly address?: string | null | undefined;
  readonly receiver_address?: string | null | undefined;
  readonly amount?: string | null | undefined;
  readonly operation: Operation;
  readonly location: {
    readonly block_hash: string;
    readonly block_height: number;
    readonly tx_id: string;
    readonly tx_index: number;
    readonly vout?: number | null | undefined;
    readonly output?: string | null | undefined;
    readonly timestamp: number;
  };
}

/** The JSON text, the bytes that digests are made of (contract/blockDigest.ts). */
export function contractJson({ rune, address, receiver_address, amount, operation, location }: ActivityRecord): string {
  const { block_hash, block_height, tx_id, tx_index, vout, output, timestamp } = location;
  return JSON.stringify({
    rune: { id: rune.id, number: rune.number, name: rune.name, spaced_name: rune.spaced_name },
    address: address ?? undefined,
    receiver_address: receiver_address ?? undefined,
    amount: amount ?? undefined,
    operation,
    location: {
      block_hash: prefixed(block_hash),
      block_height,
      tx_id: prefixed(tx_id),
      tx_index,
      vout: vout ?? undefined,
      output: output === undefined || output === null ? undefined : prefixed(output.split(':')[0] ?? ''),
      timestamp,
    },
  });
}

/** Hex digits in lower case, with `0x`. */
const prefixed = (hex: string): string => `0x${hex.toLowerCase().replace(/^0x/, '')}`;
