/**
 * Schemas of answers about balances and holders. Both dialects have the same.
 */
import { z } from 'zod';
import { count, decimal, rune, windowOf } from './parts.ts';

const address = z.string().describe('The address. Wholly upper-case bech32 is shown in lower case.');
const balance = decimal.describe(
  'What the address received, less what it sent and burned: a decimal number with the decimals of the rune.',
);

const runeBalance = z.strictObject({ rune, balance, address }).describe('What an address has of a rune.');
const holder = z.strictObject({ balance, address }).describe('An address that has a rune. A single one that had some has the balance 0.');

/** Schemas by name in the OpenAPI document. */
export const BALANCE_SCHEMAS = {
  Balance: runeBalance,
  BalanceList: z
    .strictObject(
      windowOf(
        runeBalance,
        'Number of runes that the address has.',
        'The balances of the window, the largest number of smallest units first.',
      ),
    )
    .describe('A window of the balances of an address.'),
  Holder: holder,
  HolderList: z
    .strictObject({
      block_height: count
        .optional()
        .describe(
          'Only for a rune with many holders that changed lately: the list is exact after this block. All others are exact after the highest block.',
        ),
      ...windowOf(holder, 'Number of addresses that have the rune.', 'The holders of the window, the largest balance first.'),
    })
    .describe('A window of the holders of a rune.'),
};
