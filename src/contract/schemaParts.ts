/** Schemas of parts that several answers share. */
import { z } from 'zod';
import type { Dialect } from '../pages/mirrorOptions.ts';

export const count = z.int().min(0);

/** Returns the schema of an object with exactly these keys. */
export const objectOf = <Shape extends z.core.$ZodLooseShape>(about: string, shape: Shape) => z.strictObject(shape).describe(about);

export const optional = <Schema extends z.ZodType>(schema: Schema, about: string) => schema.optional().describe(about);

/** Decimal number in units of a rune. */
export const decimal = z.string().regex(/^[0-9]+(?:\.[0-9]+)?$/);

export const rune = objectOf('Id, number and names of a rune.', {
  id: z.string().describe('Height of the block and index of the transaction that etched the rune, as in `840000:3`.'),
  number: count.describe('Number of the rune, in the order of etchings, from 0.'),
  name: z.string().describe('Name without spacers.'),
  spaced_name: z.string().describe('Name with spacers, the bullets between letters.'),
});

export const hashIn = (dialect: Dialect) => z.string().regex(dialect === 'contract' ? /^0x[0-9a-f]{64}$/ : /^[0-9a-f]{64}$/);

/** Returns the schema of a block and one of its transactions. `txId` describes the transaction id. */
export const locationIn = (dialect: Dialect, txId: string) =>
  z.strictObject({
    block_hash: hashIn(dialect).describe('Block hash.'),
    block_height: count.describe('Block height.'),
    tx_id: hashIn(dialect).describe(txId),
    tx_index: count.describe('Index of the transaction in the block, from 0.'),
    timestamp: count.describe('Block time, in seconds since 1970 (UTC).'),
  });

/** Returns the fields of a window of a list. `total` and `results` are the descriptions of these two fields. */
export const windowOf = <Entry extends z.ZodType>(entry: Entry, total: string, results: string) => ({
  limit: count.min(1).describe('The limit that was applied.'),
  offset: count.describe('The offset that was applied.'),
  total: count.describe(total),
  results: z.array(entry).describe(results),
});
