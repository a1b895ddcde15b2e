/** Zod schemas of the API's answers. */
import { z } from 'zod';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { RULES } from './fields.ts';
import { count, decimal, hashIn, locationIn, objectOf, optional, rune, windowOf } from './schemaParts.ts';
import type { Manifest } from './schemas.ts';

/** Returns the schemas of answers in a dialect, by name in the OpenAPI document. */
export const answerSchemas = (dialect: Dialect) => ({
  ...activitySchemas(dialect),
  ...etchingSchemas(dialect),
  ...BALANCE_SCHEMAS,
  ...outputSchemas(dialect),
});

type Schemas = ReturnType<typeof answerSchemas>;
type ReadOnly<Value> = { readonly [Key in keyof Value]: ReadOnly<Value[Key]> };

/** Types of the answers, and of the manifest, by the names of their schemas. */
export type Answers = ReadOnly<{ [Name in keyof Schemas]: z.infer<Schemas[Name]> } & { Manifest: Manifest }>;

export const envelope = (dialect: Dialect) => activitySchemas(dialect).ActivityList;

function activitySchemas(dialect: Dialect) {
  const spelled = dialect === 'contract' ? 'with `0x`' : 'without `0x`';
  const hash = hashIn(dialect);
  const output = dialect === 'contract' ? /^0x[0-9a-f]+$/ : /^[0-9a-f]+(?::[0-9]+)?$/;
  const location = objectOf('Block, transaction and output of the event.', {
    block_hash: hash.describe(`Block hash, in lower case, ${spelled}.`),
    block_height: count.describe('Block height.'),
    tx_id: hash.describe(`Transaction id, in lower case, ${spelled}.`),
    tx_index: count.describe('Index of the transaction in the block, from 0.'),
    vout: optional(count, 'Index of the output in the transaction. Left out if there is no output, as in etchings, mints and some burns.'),
    output: optional(
      z.string().regex(output),
      dialect === 'contract'
        ? 'Id of the transaction of the output, with `0x`; `vout` is its index. Left out if there is no output.'
        : 'The output as `txid:vout`, without `0x`. Left out if there is no output.',
    ),
    timestamp: count.describe('Block time, in seconds since 1970 (UTC).'),
  });
  const activity = objectOf('One event of a rune. Fields without a value are left out, never null.', {
    rune,
    address: optional(
      z.string(),
      'Address that received, sent or burned the amount. Left out in etchings, in mints, in burns of runes that no address held, and if a script has no address.',
    ),
    receiver_address: optional(
      z.string(),
      'Address that received the amount sent. Only in sends, and left out if the script of the output has no address.',
    ),
    amount: optional(
      z.string().regex(new RegExp(`^${RULES.amount.pattern}$`)),
      'Amount of the rune as a decimal number, with the decimals of the rune. A string, because it may need 128 bits.',
    ),
    operation: z.enum(OPERATIONS).describe('Kind of the event.'),
    location,
  });
  const list = objectOf('A window of a list.', {
    limit: z.int().min(1).describe('The limit that was applied, in records.'),
    offset: count.describe('The offset that was applied, in records.'),
    total: count.describe('Number of records in the list, whatever the window. 0 for an id that this mirror does not have.'),
    results: z.array(activity).describe('The records of the window; empty if the offset is past the end.'),
  });
  const ofRune = activity
    .omit({ rune: true })
    .describe('One event of the rune of the list. Fields without a value are left out, never null.');
  const runeList = list
    .extend({ results: z.array(ofRune).describe('The records of the window; empty if the offset is past the end.') })
    .describe('A window of the activity of a rune.');
  return { Rune: rune, Location: location, Activity: activity, ActivityList: list, RuneActivity: ofRune, RuneActivityList: runeList };
}

/** Decimal number in units of the rune. It is negative only in wrong data, which may burn more units than exist. */
const amount = z.string().regex(/^-?[0-9]+(?:\.[0-9]+)?$/);

function etchingSchemas(dialect: Dialect) {
  // Not `z.int()`, because the heights of terms may be larger than 2^53. The client makes strings of such heights.
  const height: z.ZodType<number | string | null> = z.number().min(0).nullable();
  const terms = objectOf('Terms of mints; all are null if the rune cannot be minted.', {
    amount: amount.nullable().describe('Amount of a mint.'),
    cap: decimal
      .nullable()
      .describe(`Largest number of mints, ${dialect === 'contract' ? 'a whole number' : 'divided by 10^divisibility'}.`),
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
  const list = windowOf(etching, 'Number of etchings.', 'The etchings of the window, newest first.');
  return { Etching: etching, EtchingList: objectOf('A window of the list of etchings.', list) };
}

/** Body of the 404 for a single rune or holder in dialect `hiro`. In dialect `contract`, it has the schema of all error bodies. */
export const unknownRune = objectOf('There is no such rune or holder.', { error: z.literal('Not found') });

const balanceAddress = z.string().describe('The address. Bech32 that is all upper case is returned in lower case.');
const balance = decimal.describe(
  'Amount that the address received, minus the amounts that it sent and burned. A decimal number with the decimals of the rune.',
);

const runeBalance = objectOf('Balance of an address in a rune.', { rune, balance, address: balanceAddress });
const holder = objectOf('Balance of an address that has a rune. A request for one address also finds it if its balance is 0 now.', {
  balance,
  address: balanceAddress,
});

/** Schemas about balances and holders. They are the same in both dialects, because they contain no hashes. */
const BALANCE_SCHEMAS = {
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

function outputSchemas(dialect: Dialect) {
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
