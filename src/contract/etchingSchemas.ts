/** Schemas of answers about etchings. */
import { z } from 'zod';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { count, decimal, locationIn, objectOf, optional, rune, windowOf } from './schemaParts.ts';

/** Decimal number in units of the rune. It is negative only in wrong data, which may burn more units than exist. */
const amount = z.string().regex(/^-?[0-9]+(?:\.[0-9]+)?$/);

/** Returns the schemas of answers about etchings in a dialect, by name in the OpenAPI document. */
export function etchingSchemas(dialect: Dialect) {
  // Not `z.int()`, because the heights of terms may be larger than 2^53.
  const height = z.number().min(0).nullable();
  const terms = objectOf('Terms of mints; all are null if the rune cannot be minted.', {
    amount: amount.nullable().describe('Amount of a mint.'),
    cap: decimal
      .nullable()
      .describe(
        dialect === 'contract' ? 'Largest number of mints, a whole number.' : 'Largest number of mints, divided by 10^divisibility.',
      ),
    height_start: height.describe('First block in which the rune can be minted.'),
    height_end: height.describe('First block in which the rune can no longer be minted.'),
    offset_start: height.describe('Blocks from the etching to the first block in which the rune can be minted.'),
    offset_end: height.describe('Blocks from the etching to the first block in which the rune can no longer be minted.'),
  });
  const supply = objectOf('Supply of the rune. Only `premine` if the mirror lacks older blocks.', {
    current: optional(amount, 'Premine plus minted amount, minus burned amount.'),
    minted: optional(amount, 'Sum of all mints.'),
    total_mints: optional(z.string(), 'Number of mints.'),
    mint_percentage: optional(z.string(), 'Mints in percent of the cap.'),
    mintable: optional(z.boolean(), 'True if the rune can be minted in the next block.'),
    burned: optional(amount, 'Sum of all burns.'),
    total_burns: optional(z.string(), 'Number of burns.'),
    premine: amount.describe('Amount that the etching itself created.'),
  });
  const txId = 'Transaction id; zeros for the rune that the protocol itself etched.';
  const location = locationIn(dialect, txId).describe('Block and transaction of the etching.');
  const etching = objectOf('A rune.', {
    id: rune.shape.id,
    name: rune.shape.name,
    spaced_name: rune.shape.spaced_name,
    number: rune.shape.number,
    divisibility: count.max(38).describe('Decimals of amounts.'),
    symbol: z.string().describe('Currency symbol; `¤` if the rune has none.'),
    turbo: z.boolean().describe('True if the rune takes part in future changes of the protocol.'),
    mint_terms: terms,
    supply,
    location,
  });
  const list = objectOf(
    'A window of the list of etchings.',
    windowOf(etching, 'Number of etchings.', 'The etchings of the window, newest first.'),
  );
  return { Etching: etching, EtchingList: list };
}

/**
 * Body of the 404 for a single rune or holder in dialect `hiro`. In dialect `contract`, the body of this 404 has the
 * schema of all error bodies.
 */
export const unknownRune = objectOf('There is no such rune or holder.', { error: z.literal('Not found') });
