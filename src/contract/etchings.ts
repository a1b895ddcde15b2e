/**
 * Schemas of answers about etchings.
 */
import { z } from 'zod';
import type { Dialect } from '../pages/site.ts';

const count = z.int().min(0);
/** A decimal number in units of the rune. Wrong data may burn more than there was. */
const amount = z.string().regex(/^-?[0-9]+(?:\.[0-9]+)?$/);

/** Makes the schemas of answers about etchings in a dialect, by name in the OpenAPI document. */
export function etchingSchemas(dialect: Dialect) {
  const hash = z.string().regex(dialect === 'contract' ? /^0x[0-9a-f]{64}$/ : /^[0-9a-f]{64}$/);
  // Terms may be larger than 2^53.
  const height = z.number().min(0).nullable();
  const terms = z
    .strictObject({
      amount: amount.nullable().describe('Amount of a mint.'),
      cap: z
        .string()
        .regex(/^[0-9]+(?:\.[0-9]+)?$/)
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
  const location = z
    .strictObject({
      block_hash: hash.describe('Block hash.'),
      block_height: count.describe('Block height.'),
      tx_id: hash.describe('Transaction id; zeros for the rune that the protocol itself etched.'),
      tx_index: count.describe('Index of the transaction in the block, from 0.'),
      timestamp: count.describe('Block time, in seconds since 1970 (UTC).'),
    })
    .describe('Block and transaction of the etching.');
  const etching = z
    .strictObject({
      id: z.string().describe('Height of the block and index of the transaction that etched the rune, as in `840000:3`.'),
      name: z.string().describe('Name without spacers.'),
      spaced_name: z.string().describe('Name with spacers, the bullets between letters.'),
      number: count.describe('Number of the rune, in the order of etchings, from 0.'),
      divisibility: count.max(38).describe('Decimals of amounts.'),
      symbol: z.string().describe('Currency symbol; `¤` if the rune has none.'),
      turbo: z.boolean().describe('True if the rune takes part in future changes of the protocol.'),
      mint_terms: terms,
      supply,
      location,
    })
    .describe('A rune.');
  const list = z
    .strictObject({
      limit: count.min(1).describe('The limit that was applied.'),
      offset: count.describe('The offset that was applied.'),
      total: count.describe('Number of etchings.'),
      results: z.array(etching).describe('The etchings of the window, newest first.'),
    })
    .describe('A window of the list of etchings.');
  return { Etching: etching, EtchingList: list };
}

/** Body of the 404 of a single rune or holder in dialect `hiro`. In `contract` it is that of every error. */
export const unknownRune = z.strictObject({ error: z.literal('Not found') }).describe('There is no such rune or holder.');
