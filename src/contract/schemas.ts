/**
 * The contract as zod schemas: what is taken in, and what goes out. Field rules come from fields.ts.
 */
import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { areEncodings, arePageSizes, DIALECTS, type Dialect, ENCODINGS, LAYOUTS, OPERATIONS } from '../pages/lists.ts';
import { prefixDigitsFor } from '../pages/packed.ts';
import { ACTIVITY_FIELDS, type Field, type FieldKind, MAX_AMOUNT, MAX_INTEGER, RULES } from './fields.ts';
import { parseSiteUrl, SITE_URL_RULE } from './siteUrl.ts';

const whole = (kind: FieldKind) => new RegExp(`^${RULES[kind].pattern}$`);

/** Whether an amount's digits, read as smallest units, fit 128 bits. */
const fits128 = (amount: string): boolean => {
  const digits = amount.replace('.', '');
  return digits.length <= 80 && /^[0-9]+$/.test(digits) && BigInt(digits) <= MAX_AMOUNT;
};

/** The schema of a value that is text already: CSV cells, and table columns cast to text. */
export function textRule(kind: FieldKind): z.ZodType<string> {
  const { rule } = RULES[kind];
  if (kind === 'text') return z.string({ error: rule });
  const base = z.string({ error: rule }).regex(whole(kind), { error: rule, abort: true });
  if (kind === 'integer') return base.refine((text) => Number(text) <= MAX_INTEGER, { error: rule });
  if (kind === 'amount' || kind === 'units') return base.refine(fits128, { error: rule });
  if (kind === 'output') return base.refine((text) => (outpointIndex(text) ?? 0) <= MAX_INTEGER, { error: rule });
  return base;
}

/** The index in an outpoint `txid:vout`; undefined for an output without one. */
const outpointIndex = (output: unknown): number | undefined =>
  typeof output === 'string' && output.includes(':') ? Number(output.slice(output.indexOf(':') + 1)) : undefined;

/** An outpoint carries its index, so a `vout` beside it must be the same. */
function checkOutpoint(output: unknown, vout: unknown): string | undefined {
  const index = outpointIndex(output);
  if (index === undefined || vout === undefined || vout === null || Number(vout) === index) return undefined;
  return `names output ${index}, but vout is ${String(vout)}`;
}

/** The schema of a JSON value: integers are numbers there, everything else is a string. */
const jsonRule = (kind: FieldKind): z.ZodType =>
  kind === 'integer'
    ? z.number({ error: RULES.integer.rule }).int({ error: RULES.integer.rule }).min(0, { error: RULES.integer.rule })
    : textRule(kind);

const MISSING = 'is missing';

/** A flat row whose cells are text (null for no value), as tables and CSV files have it. */
export const textRow = (fields: readonly Field[]): z.ZodType =>
  z
    .object(Object.fromEntries(fields.map((f) => [f.column, f.required ? present(textRule(f.kind)) : textRule(f.kind).nullish()])))
    .superRefine((row, context) => {
      const message = checkOutpoint(row['output'], row['vout']);
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['output'], message });
    });

const present = (schema: z.ZodType): z.ZodType =>
  z.any().superRefine((value, context) => {
    if (value === undefined || value === null) context.addIssue({ code: 'custom', message: MISSING });
    else for (const issue of schema.safeParse(value).error?.issues ?? []) context.addIssue({ code: 'custom', message: issue.message });
  });

/**
 * An Activity of the input, in either dialect: hashes with or without `0x`, in any case; null counts as no value; keys that the
 * contract does not know are ignored.
 */
export const activityInput: z.ZodType = nested(
  ACTIVITY_FIELDS.map((f) => [f.path, f.required ? present(jsonRule(f.kind)) : jsonRule(f.kind).nullish()]),
).superRefine((activity, context) => {
  const { location } = activity as { location: { output?: unknown; vout?: unknown } };
  const message = checkOutpoint(location.output, location.vout);
  if (message !== undefined) context.addIssue({ code: 'custom', path: ['location', 'output'], message });
});

/** An object schema from dotted paths of one or two parts. */
function nested(entries: [string, z.ZodType][]): z.ZodType {
  const groups = new Map<string, Record<string, z.ZodType>>();
  const top: Record<string, z.ZodType> = {};
  for (const [path, schema] of entries) {
    const [head = '', tail] = path.split('.');
    if (tail === undefined) top[head] = schema;
    else groups.set(head, { ...groups.get(head), [tail]: schema });
  }
  for (const [name, shape] of groups) top[name] = z.object(shape);
  return z.object(top);
}

const integer = z.int().min(0);

/** How many runes of rows that were left out a manifest names. */
export const MOST_RUNES_NAMED = 20;

/** What a rune is called. */
const rune = z
  .strictObject({
    id: z.string().describe('Rune id: height of the block and index of the transaction that etched the rune, as in `840000:3`.'),
    number: integer.describe('Rune number, in the order of etchings, from 0.'),
    name: z.string().describe('Name without spacers.'),
    spaced_name: z.string().describe('Name with spacers, the bullets between letters.'),
  })
  .describe('A rune.');

/** The parts of a response as a build of this dialect answers it, each under its name in documents. Fields without a value are left out. */
export function responseSchemas(dialect: Dialect) {
  const hex = dialect === 'contract' ? '0x[0-9a-f]' : '[0-9a-f]';
  const spelled = dialect === 'contract' ? 'with `0x`' : 'without `0x`';
  const hash = z.string().regex(new RegExp(`^${hex}{64}$`));
  const output = dialect === 'contract' ? /^0x[0-9a-f]+$/ : /^[0-9a-f]+(?::[0-9]+)?$/;
  const location = z
    .strictObject({
      block_hash: hash.describe(`Block hash, in lower case, ${spelled}.`),
      block_height: integer.describe('Block height.'),
      tx_id: hash.describe(`Transaction id, in lower case, ${spelled}.`),
      tx_index: integer.describe('Index of the transaction in the block, from 0.'),
      vout: integer.optional().describe('Index of the output in the transaction. Omitted if there is no output.'),
      output: z
        .string()
        .regex(output)
        .optional()
        .describe(
          dialect === 'contract'
            ? 'Transaction id of the output, with `0x`; `vout` is its index. Omitted if there is no output.'
            : 'Output as `txid:vout`, without `0x`. Omitted if there is no output.',
        ),
      timestamp: integer.describe('Block time, in seconds since 1970 (UTC).'),
    })
    .describe('Place of the event in the chain.');
  const activity = z
    .strictObject({
      rune,
      address: z.string().optional().describe('Address of the event. Omitted if there is none.'),
      receiver_address: z.string().optional().describe('Address of the receiver. Omitted if there is none.'),
      amount: z
        .string()
        .regex(whole('amount'))
        .optional()
        .describe('Amount as a decimal number with the decimals of the rune. A string, because it may have 128 bits.'),
      operation: z.enum(OPERATIONS).describe('Operation of the event.'),
      location,
    })
    .describe('A record: one event of a rune. Fields without a value are omitted, never null.');
  const list = z
    .strictObject({
      limit: z.int().min(1).describe('Applied limit, in records.'),
      offset: integer.describe('Applied offset, in records.'),
      total: integer.describe('Number of records of the list, independent of the window. 0 for an unknown id.'),
      results: z.array(activity).describe('Records of the window; empty if the offset is past the end.'),
    })
    .describe('A window of a list.');
  return { Rune: rune, Location: location, Activity: activity, ActivityList: list };
}

/** The response of both operations. */
export const envelope = (dialect: Dialect) => responseSchemas(dialect).ActivityList;

/** The body of every refusal. */
export const errorResponse = z
  .strictObject({
    statusCode: z.int().describe('HTTP status.'),
    error: z.string().describe('Name of the status.'),
    message: z.string().describe('What is wrong. For a bad request: the parameter and its rule.'),
  })
  .describe('An error.');

/** The body of `/runes/v1/`. */
export const status = z
  .strictObject({
    server_version: z.string().describe('Program that built the mirror, and its version.'),
    status: z.literal('ready').describe('Always `ready`.'),
    block_height: integer.describe('Highest block of the mirror.'),
  })
  .describe('Status of the mirror.');

/** A file of digests, `runes/v1/digests/840000.json` (output/digests.ts). */
export const digestsFile = z
  .strictObject({
    blocks: z
      .array(
        z.strictObject({
          height: z.int().describe('Block height.'),
          hash: z.string().describe('Block hash: 64 hex digits without `0x`.'),
          records: z.int().describe('Number of records of the block.'),
          digest: z.string().describe('SHA-256 (64 hex digits) of the records in served order, in dialect `contract`, joined by commas.'),
        }),
      )
      .min(1)
      .describe('Blocks by ascending height, without heights that have no activity.'),
  })
  .describe('Digests of blocks of a thousand heights.');

/** A list of page sizes: the first is the default limit and the last the maximum. */
const pageSizes = z.array(z.int()).refine(arePageSizes, { error: 'must be ascending, none twice' });

/**
 * `runes/v1/manifest.json`: what a build holds. No times, so that the same input makes the same bytes. Its numbers must fit each other: those who read
 * it make room for what it says.
 */
export const manifest = z
  .object({
    generator: z.literal('rune-activity-mirror').describe('Always `rune-activity-mirror`.'),
    version: z.string().describe('Version of the program.'),
    layout: z.enum(LAYOUTS).describe('Layout of the files. Answers are the same in both.'),
    dialect: z.enum(DIALECTS).describe('Spelling of responses: in `contract` hashes begin with `0x`.'),
    page_sizes: pageSizes.describe('Ascending: the first is the default limit, the last the maximum.'),
    operation_pages: z.boolean().describe('Whether blocks have lists by operation.'),
    compress: z
      .array(z.enum(ENCODINGS))
      .min(1)
      .refine(areEncodings, { error: 'must be in the order br, gz' })
      .optional()
      .describe(
        'Compressed files beside pages of three or more records; omitted if there are none. `files` and `bytes` do not count them.',
      ),
    site_url: z
      .string()
      .refine((url) => parseSiteUrl(url) === url, { error: SITE_URL_RULE })
      .optional()
      .describe('Public URL of the mirror, for links of its feed; omitted if unknown.'),
    parquet: z
      .literal(true)
      .optional()
      .describe('True if `activity/` has all records as Parquet files, otherwise omitted. `files` and `bytes` do not count them.'),
    transaction_prefix: z
      .int()
      .min(1)
      .max(16)
      .optional()
      .describe('Number of hex digits of a transaction id that name its index file; only in layout `packed`.'),
    heights: z.array(z.tuple([integer, integer])).describe('Runs of consecutive heights with activity: first and last, inclusive.'),
    blocks: integer.describe('Number of blocks with activity.'),
    transactions: integer.describe('Number of transactions with activity.'),
    records: integer.describe('Number of records.'),
    left_out: z
      .strictObject({
        rows: z.int().min(1).describe('Number of rows left out. Copies of a row in several files count once.'),
        runes: z.array(z.string()).min(1).max(MOST_RUNES_NAMED).describe('Ids of their runes, most rows first.'),
        more_runes: integer.describe('Number of runes not named.'),
      })
      .optional()
      .describe('Ledger rows that are in no answer, because their rune is not in the runes table of the input. Omitted if there are none.'),
    files: integer.describe(
      'Number of files with pages or pointers, as a client sees them, hash paths included. The index of layout `packed` has 16^`transaction_prefix` more files.',
    ),
    bytes: integer.describe('Size of these files in bytes.'),
    digest: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .describe('SHA-256 over the digests of all blocks. Mirrors with equal digests have the same data.'),
  })
  .describe('Content and options of a mirror.')
  .superRefine(({ layout, blocks, transactions, records, transaction_prefix: digits }, context) => {
    const misfit = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
    if (blocks > transactions) misfit('blocks', `${blocks} blocks do not have ${transactions} transactions`);
    if (transactions > records) misfit('transactions', `${transactions} transactions do not have ${records} records`);
    const right = layout === 'packed' ? prefixDigitsFor(transactions) : undefined;
    if (digits === right) return;
    misfit(
      'transaction_prefix',
      right === undefined ? 'is for layout packed' : `${transactions} transactions have prefixes of ${right} digits`,
    );
  });
export type Manifest = z.infer<typeof manifest>;

/** What is wrong with a file that cannot be parsed or does not fit its schema, in a line. */
export function misfitOf(error: unknown): string {
  const [issue] = error instanceof z.ZodError ? error.issues : [];
  return issue === undefined ? (messageOf(error).split('\n')[0] ?? '') : [issue.path.join('.'), issue.message].filter(Boolean).join(': ');
}
