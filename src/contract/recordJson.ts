/**
 * Formats a parsed record as JSON of the dialect `contract`, for `npm run verify`. Builds produce the same
 * text in SQL (engine/render/renderRecordSql.ts), because DuckDB formats millions of records on all cores.
 * test/verify/verify.test.ts and test/pull/blocksOfRows.test.ts check that both texts have the same digests.
 */
import type { Operation } from '../pages/blockAndTransactionLists.ts';

/** Valid record in either dialect. Null means no value. */
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

/** Formats a record as JSON. Digests are computed from these bytes (contract/blockDigest.ts). */
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

/** Converts hex digits to lower case, with `0x`. */
const prefixed = (hex: string): string => `0x${hex.toLowerCase().replace(/^0x/, '')}`;
