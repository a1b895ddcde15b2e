/**
 * Schemas of answers about balances and holders. They are the same in both dialects, because they contain no hashes.
 */
import { z } from 'zod';
import { count, decimal, objectOf, optional, rune, windowOf } from './schemaParts.ts';

const address = z.string().describe('The address. Bech32 that is all upper case is returned in lower case.');
const balance = decimal.describe(
  'Amount that the address received, minus the amounts that it sent and burned. A decimal number with the decimals of the rune.',
);

const runeBalance = objectOf('Balance of an address in a rune.', { rune, balance, address });
const holder = objectOf('Balance of an address that has a rune. A request for one address also finds it if its balance is 0 now.', {
  balance,
  address,
});

export const BALANCE_SCHEMAS = {
  Balance: runeBalance,
  BalanceList: objectOf(
    'A window of the balances of an address.',
    windowOf(
      runeBalance,
      'Number of runes that the address has.',
      'The balances of the window, the largest number of smallest units first.',
    ),
  ),
  Holder: holder,
  HolderList: objectOf('A window of the holders of a rune.', {
    block_height: optional(
      count,
      'Height of the block after which the list is exact. Only for a rune with many holders that changed lately. Without it, the list is exact after the highest block.',
    ),
    ...windowOf(holder, 'Number of addresses that have the rune.', 'The holders of the window, the largest balance first.'),
  }),
};
