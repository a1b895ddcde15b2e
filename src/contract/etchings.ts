/**
 * Schemas of answers about etchings.
 */
import { z } from 'zod';
import type { Dialect } from '../pages/site.ts';
import { count, decimal, locationIn, rune, windowOf } from './parts.ts';

/** A decimal number in units of the rune. Wrong data may burn more than there was. */
const amount = z.string().regex(/^-?[0-9]+(?:\.[0-9]+)?$/);

/** Makes the schemas of answers about etchings in a dialect, by name in the OpenAPI document. */
export function etchingSchemas(dialect: Dialect) {
  // Terms may be larger than 2^53.
  const height = z.number().min(0).nullable();
  const terms = z
    .strictObject({
      amount: amount.nullable().describe('Amount of a mint.'),
      cap: decimal
        .nullable()
        .describe(
          dialect === 'contract'
            ? 'Most mints, a whole number.'
            : 'Most mints, shifted by the decimals of the rune: multiply it by 10^divisibility.',
        ),
      height_start: height.describe('First block with mints.'),
      height_end: height.describe('First block after the mints.'),
      offset_start: height.describe('Blocks from the etching to the first block with mints.'),
      offset_end: height.describe('Blocks from the etching to the first block after the mints.'),
    })
    .describe('Terms of mints; all are null if the rune cannot be minted.');
  const supply = z
    .strictObject({
      current: amount.optional().describe('Premined and minted, less what was burned.'),
      minted: amount.optional().describe('Sum of all mints.'),
      total_mints: z.string().optional().describe('Number of mints.'),
      mint_percentage: z.string().optional().describe('Mints in percent of the cap.'),
      mintable: z.boolean().optional().describe('True if the next block may mint.'),
      burned: amount.optional().describe('Sum of all burns.'),
      total_burns: z.string().optional().describe('Number of burns.'),
      premine: amount.describe('Amount of the etching itself.'),
    })
    .describe('What there is of the rune. Only `premine` if the mirror lacks older blocks.');
  const txId = 'Transaction id; zeros for the rune that the protocol itself etched.';
  const location = locationIn(dialect, txId).describe('Block and transaction of the etching.');
  const etching = z
    .strictObject({
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
    })
    .describe('A rune.');
  const list = z
    .strictObject(windowOf(etching, 'Number of etchings.', 'The etchings of the window, newest first.'))
    .describe('A window of the list of etchings.');
  return { Etching: etching, EtchingList: list };
}

/** Body of the 404 of a single rune or holder in dialect `hiro`. In `contract` it is that of every error. */
export const unknownRune = z.strictObject({ error: z.literal('Not found') }).describe('There is no such rune or holder.');
