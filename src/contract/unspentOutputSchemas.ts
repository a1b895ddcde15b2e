/** Schemas of answers about unspent outputs. */
import { z } from 'zod';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { count, decimal, hashIn, locationIn, objectOf, optional, rune, windowOf } from './schemaParts.ts';

/** Returns the schemas of answers about outputs in a dialect, by name in the OpenAPI document. */
export function outputSchemas(dialect: Dialect) {
  const prefix = dialect === 'contract' ? '0x' : '';
  const output = z
    .string()
    .regex(new RegExp(`^${prefix}[0-9a-f]{64}:[0-9]+$`))
    .describe('The outpoint, `txid:vout`.');
  const tip = {
    block_height: count.describe('Height of the last block that the mirror has read. The answer applies after this block.'),
    block_hash: hashIn(dialect).describe('Hash of this block.'),
  };
  const location = locationIn(dialect, 'Transaction id.').describe('Block and transaction of the output.');
  const balance = z.strictObject({
    rune,
    balance: decimal.describe('Amount of the rune in the output: a decimal number with the decimals of the rune.'),
  });
  const spent = z
    .boolean()
    .nullable()
    .describe(
      'False if the output holds runes, true if it held runes and is spent. Null if no output of this name is known to have held runes up to this block: whether it exists is unknown.',
    );
  const runes = z.array(balance).describe('The runes of the output, the oldest first.');
  const held = optional(
    runes.nullable(),
    'The runes that the output held, the oldest first. Only if `spent` is true, or null if it is unknown whether the output held runes.',
  );
  const address = optional(z.string(), 'The address; left out if the script of the output has none.');
  return {
    Output: objectOf(
      'An output. If it has no runes, `runes` is empty: the output is spent, never had runes, or is not in the chain up to this block. Address and location are left out if `spent` is null.',
      { ...tip, output, address, location: location.optional(), runes, spent, held },
    ),
    OutputList: objectOf('A window of the unspent outputs of an address.', {
      ...tip,
      ...windowOf(
        z.strictObject({ output, address, location, runes }),
        'Number of unspent outputs with runes that the address has.',
        'The outputs of the window, newest first.',
      ),
    }),
  };
}
