/**
 * Schemas of answers about balances and holders. Both dialects have the same.
 */
import { z } from 'zod';
import { rune } from './rune.ts';

const count = z.int().min(0);
const address = z.string().describe('The address. Wholly upper-case bech32 is shown in lower case.');
const balance = z
  .string()
  .regex(/^[0-9]+(?:\.[0-9]+)?$/)
  .describe('What the address received, less what it sent and burned: a decimal number with the decimals of the rune.');

const window = {
  limit: count.min(1).describe('The limit that was applied.'),
  offset: count.describe('The offset that was applied.'),
};

const runeBalance = z.strictObject({ rune, balance, address }).describe('What an address has of a rune.');
const holder = z.strictObject({ balance, address }).describe('An address that has a rune. A single one that had some has the balance 0.');

/** Schemas by name in the OpenAPI document. */
export const BALANCE_SCHEMAS = {
  Balance: runeBalance,
  BalanceList: z
    .strictObject({
      ...window,
      total: count.describe('Number of runes that the address has.'),
      results: z.array(runeBalance).describe('The balances of the window, the largest number of smallest units first.'),
    })
    .describe('A window of the balances of an address.'),
  Holder: holder,
  HolderList: z
    .strictObject({
      block_height: count
        .optional()
        .describe(
          'Only for a rune with many holders that changed lately: the list is exact after this block. All others are exact after the highest block.',
        ),
      ...window,
      total: count.describe('Number of addresses that have the rune.'),
      results: z.array(holder).describe('The holders of the window, the largest balance first.'),
    })
    .describe('A window of the holders of a rune.'),
};
