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

/** An Activity as a build of this dialect answers it. Fields without a value are left out. */
function activityOutput(dialect: Dialect) {
  const hex = dialect === 'contract' ? '0x[0-9a-f]' : '[0-9a-f]';
  const hash = z.string().regex(new RegExp(`^${hex}{64}$`));
  const output = dialect === 'contract' ? /^0x[0-9a-f]+$/ : /^[0-9a-f]+(?::[0-9]+)?$/;
  return z.strictObject({
    rune: z.strictObject({ id: z.string(), number: integer, name: z.string(), spaced_name: z.string() }),
    address: z.string().optional(),
    receiver_address: z.string().optional(),
    amount: z.string().regex(whole('amount')).optional(),
    operation: z.enum(OPERATIONS),
    location: z.strictObject({
      block_hash: hash,
      block_height: integer,
      tx_id: hash,
      tx_index: integer,
      vout: integer.optional(),
      output: z.string().regex(output).optional(),
      timestamp: integer,
    }),
  });
}

/** The response of both operations. */
export const envelope = (dialect: Dialect) =>
  z.strictObject({ limit: z.int().min(1), offset: integer, total: integer, results: z.array(activityOutput(dialect)) });

/** The body of every refusal. */
export const errorResponse = z.strictObject({ statusCode: z.int(), error: z.string(), message: z.string() });

/** The body of `/runes/v1/`. `block_height` is the highest block in the data. */
export const status = z.strictObject({ server_version: z.string(), status: z.literal('ready'), block_height: integer });

/** A list of page sizes: the first is the default limit and the last the maximum. */
const pageSizes = z.array(z.int()).refine(arePageSizes, { error: 'must be ascending, none twice' });

/**
 * `runes/v1/manifest.json`: what a build holds. No times, so that the same input makes the same bytes. Its numbers must fit each other: those who read
 * it make room for what it says.
 */
export const manifest = z
  .object({
    generator: z.literal('rune-activity-mirror'),
    version: z.string(),
    layout: z.enum(LAYOUTS),
    dialect: z.enum(DIALECTS),
    page_sizes: pageSizes,
    /** Whether blocks have lists by operation. */
    operation_pages: z.boolean(),
    /** Compressed files that lie beside pages of three records or more; left out when there are none. `files` and `bytes` are without them. */
    compress: z.array(z.enum(ENCODINGS)).min(1).refine(areEncodings, { error: 'must be in the order br, gz' }).optional(),
    /** The public address of the mirror, which its feed links to; left out when it was not given. */
    site_url: z
      .string()
      .refine((url) => parseSiteUrl(url) === url, { error: SITE_URL_RULE })
      .optional(),
    /** Whether `activity/` has all records as Parquet files; left out when not. `files` and `bytes` are without them. */
    parquet: z.literal(true).optional(),
    /** Hex digits of a tx id that name its file of the index; layout `packed` only. */
    transaction_prefix: z.int().min(1).max(16).optional(),
    /** Runs of consecutive heights with activity, both ends included. */
    heights: z.array(z.tuple([integer, integer])),
    blocks: integer,
    transactions: integer,
    records: integer,
    /**
     * Files of pages (and pointers) and what they hold, hash paths counted as the files that they are to a client. The index of layout `packed` has
     * 16^transaction_prefix files more.
     */
    files: integer,
    bytes: integer,
    /** SHA-256 over all blocks' digests (build/digests.ts): two mirrors with the same digest hold the same data. */
    digest: z.string().regex(/^[0-9a-f]{64}$/),
  })
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
