/** Zod schemas of the documents of builds, and of errors. */
import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { isFileName } from '../format/fileName.ts';
import { FORMAT, formatFault } from '../format/formatVersion.ts';
import { MOST_NOTE_CHARACTERS } from '../format/signedNote.ts';
import { rowsIndexPath } from '../pages/filePaths.ts';
import { arePageSizes, DIALECTS, type Dialect, LAYOUTS } from '../pages/mirrorOptions.ts';
import type { FurtherPart } from '../pages/optionalEndpoints.ts';
import { parseSiteUrl, SITE_URL_RULE } from './plainUrl.ts';
import { count, hashIn, objectOf, optional } from './schemaParts.ts';
import { lastRead, networkName, sources } from './sources.ts';

/** Hash without `0x`, in both dialects. */
export const hex64 = z.string().regex(/^[0-9a-f]{64}$/);

/** Maximum number of runes that a manifest names in `left_out` or `unbalanced`. Further runes are only counted. */
export const MOST_RUNES_NAMED = 20;

export const errorResponse = objectOf('Body of an error response.', {
  statusCode: z.int().describe('The HTTP status.'),
  error: z.string().describe('Reason phrase of the status.'),
  message: z.string().describe('Reason for the error. For a bad request, the parameter and its rule.'),
});

/** Body of `/runes/v1/`. */
export const status = objectOf('Status of the mirror.', {
  server_version: z.string().describe('Name and version of the program that made the mirror.'),
  status: z.literal('ready').describe('Always `ready`.'),
  block_height: count.describe('Height of the highest block that the mirror has.'),
  block_time: count
    .nullable()
    .describe('Time of this block, in seconds since 1970 (UTC). Null if the block has no activity: no record says its time then.'),
});

/** A file of digests, `runes/v1/digests/840000.json` (output/digests.ts). */
export const digestsFile = objectOf('Digests of the blocks of 1,000 heights.', {
  blocks: z
    .array(
      z.strictObject({
        height: count.describe('Height of the block.'),
        hash: hex64.describe('Hash of the block: 64 hex digits without `0x`.'),
        records: count.describe('Number of records in the block.'),
        digest: hex64.describe(
          'SHA-256 of the records in served order, as JSON of the dialect `contract`, joined by commas: 64 hex digits.',
        ),
      }),
    )
    .min(1)
    .describe('Heights ascending. Heights without activity are left out.'),
});

export type BlockDigest = Readonly<z.infer<typeof digestsFile>['blocks'][number]>;

/** Returns the schemas of the files of changes (lists/changes.ts) in a dialect, by name in the OpenAPI document. */
export function changesSchemas(dialect: Dialect) {
  const point = {
    height: z.int().min(0).describe('Height of the block.'),
    hash: hashIn(dialect).describe('Hash of the block, in the same form as in lists.'),
  };
  const outpoints = z.array(z.string().regex(/^[0-9a-f]{64}:[0-9]+$/));
  const Changes = objectOf('What a block touched. Each list is sorted by bytes.', {
    ...point,
    previous: optional(
      z.strictObject(point),
      'The block below. Blocks without activity whose hash the mirror does not know are skipped. Left out in the lowest block.',
    ),
    runes: z.array(z.string()).describe('Ids of the runes in its records.'),
    addresses: z.array(z.string()).describe('Addresses in its records.'),
    made: outpoints.describe('Outputs that received runes, as `txid:vout`.'),
    spent: optional(outpoints, 'Outputs with runes that the block spends. Left out if the mirror is not from a node.'),
    more: optional(z.literal(true), 'True if a list was cut after its first `most_entries` entries. Left out otherwise.'),
  });
  const ChangesIndex = objectOf('The list of the files of changes.', {
    most_blocks: z.int().min(1).describe('Most blocks with such a file.'),
    most_entries: z.int().min(1).describe('Most entries of a list in such a file.'),
    blocks: z
      .array(z.strictObject({ ...point, sha256: hex64.describe('SHA-256 of the file of the block.') }))
      .describe('The newest blocks, heights ascending.'),
  });
  return { Changes, ChangesIndex };
}

const namedRune = [z.string().describe('Name with its spacers.'), z.string().describe('Rune id.'), count.describe('Rune number.')] as const;
const symbol = z.string().describe('Symbol; left out if the rune has none, or the mirror has no etchings.');

/** Schema of `runes/v1/search/do.json`, a file that finds runes by the first letters of their names (lists/searchFiles.ts). */
export const searchFile = objectOf('Runes by the first letters of their names.', {
  runes: z
    .array(z.union([z.tuple(namedRune), z.tuple([...namedRune, symbol])]))
    .describe(
      'Runes whose names begin with these letters, oldest first. Complete, except for names that continue with a letter in `more`.',
    ),
  more: z.string().describe('Next letters that have their own file. Of the runes with these letters, only the oldest are in this file.'),
});

const pageSizes = z.array(z.int()).refine(arePageSizes, { error: 'must be ascending, none twice' });

const rootName = z.strictObject({
  root: z.string().refine(isFileName, { error: 'must be 64 hex digits' }).describe('Name of the root, which names all other files.'),
  bytes: z.int().min(1).describe('Size of the content of the root, in bytes.'),
});

/**
 * Schema of `runes/v1/manifest.json`. A manifest contains no times except in `note`, so that equal input gives equal bytes. The schema also
 * checks that the numbers of a manifest do not contradict each other, because readers allocate memory according to them.
 */
export const manifest = z
  .object({
    generator: z.literal('rune-activity-mirror').describe('Always `rune-activity-mirror`.'),
    format: z
      .literal(FORMAT, { error: ({ input }) => formatFault(input) ?? '' })
      .describe('Version of the files. A program that reads another version needs an update, or the mirror a new build.'),
    version: z.string().describe('Version of the program.'),
    sample: optional(z.literal(true), 'True if the mirror has the invented blocks of the sample of this program. Left out otherwise.'),
    layout: z.enum(LAYOUTS).describe('Layout of the files. All layouts give the same responses.'),
    dialect: z.enum(DIALECTS).describe('Dialect of responses: in `contract`, hashes begin with `0x`.'),
    page_sizes: pageSizes.describe('Page sizes, ascending. The first is the default limit, the last the largest.'),
    operation_pages: z.boolean().describe('True if blocks have lists by operation.'),
    site_url: optional(
      z.string().refine((url) => parseSiteUrl(url) === url, { error: SITE_URL_RULE }),
      'Public URL of the mirror, used in links of its feed. Left out if it was not given.',
    ),
    rows: optional(
      z
        .strictObject({ index: z.string().describe('Path of the list of these files.'), sha256: hex64.describe('SHA-256 of this list.') })
        .refine(({ index, sha256 }) => index === rowsIndexPath(sha256), { error: 'has an index with another name' }),
      'Ledger rows as Parquet files. Left out if there are none. `files` and `bytes` do not count these files.',
    ),
    changes: optional(
      z.strictObject({ sha256: hex64.describe('SHA-256 of the list of these files, `runes/v1/changes/index.json`.') }),
      'Files of what each of the newest blocks touched. Left out in older mirrors.',
    ),
    archive: optional(rootName, 'The archive with all lists. Only in layout `archive`.'),
    list_root: optional(rootName, 'The archive with etchings and other lists. Only in layout `files`, if it has any.'),
    heights: z.array(z.tuple([count, count])).describe('Ranges of consecutive heights with activity: first and last, both included.'),
    tip: optional(lastRead, 'Last block that was read, even if it has no activity. Left out if there are no blocks.'),
    blocks: count.describe('Blocks with activity.'),
    transactions: count.describe('Transactions with activity.'),
    records: count.describe('Records.'),
    left_out: optional(
      z.strictObject({
        rows: z.int().min(1).describe('Number of rows that were left out. A row that is in several files counts once.'),
        runes: z.array(z.string()).min(1).max(MOST_RUNES_NAMED).describe('Ids of their runes, most rows first.'),
        more_runes: count.describe('Number of runes that are not listed in `runes`.'),
      }),
      'Ledger rows of the input whose rune is not in its runes table. No response has them. Left out if there are none.',
    ),
    sources: optional(sources.min(1), 'Which blocks were read, and which rules made their records, as far as the input says.'),
    network: optional(networkName, 'Name of the network in Bitcoin Core, such as `main`. Left out if the input does not name it.'),
    lists: optional(
      z.object({
        etchings: optional(
          z.object({
            total: count.describe('Number of etchings.'),
            counts: optional(
              z.literal(true),
              'True if the supply of etchings has the counts of mints and burns. Left out if the data lacks older blocks.',
            ),
          }),
          'Etchings. Left out if the input has no complete runes table.',
        ),
        rune_activity: optional(z.record(z.string(), z.never()), 'Activity by rune, and by rune and address, of the blocks in `heights`.'),
        address_activity: optional(z.record(z.string(), z.never()), 'Activity by address, of the blocks in `heights`.'),
        balances: optional(
          z.object({
            unbalanced: optional(
              z.strictObject({
                runes: z.array(z.string()).min(1).max(MOST_RUNES_NAMED).describe('Ids of these runes, the oldest first.'),
                more_runes: count.describe('Number of runes that are not listed in `runes`.'),
              }),
              'Runes with a balance below zero after the highest block, because the data is wrong. Such balances are in no list. Left out if there are no such runes.',
            ),
          }),
          'Balances of addresses. Left out if the data lacks older blocks.',
        ),
        holders: optional(
          z.object({
            block_height: optional(
              count,
              'A list of holders that is not exact after the highest block names the block after which it is exact. That block is this one or a later one.',
            ),
          }),
          'Holders of runes. Left out if the data lacks older blocks.',
        ),
        outputs: optional(
          z.record(z.string(), z.never()),
          'Unspent outputs with runes. Left out if the data is not from a Bitcoin Core node.',
        ),
      } satisfies Record<FurtherPart, z.ZodType>),
      'Optional parts of the API that the mirror has. Requests for other parts get 501. Left out if there are none.',
    ),
    files: count.describe('Number of files with pages, including paths by block hash, and of files in `archive/`.'),
    bytes: count.describe('Total size of these files, in bytes.'),
    digest: hex64.describe('SHA-256 over the digests of all blocks. Mirrors with the same digest have the same data.'),
    note: optional(
      z.string().max(MOST_NOTE_CHARACTERS),
      'Signed note of the operator: covers all other fields and, by the root, the archive. Left out if the mirror is not signed.',
    ),
  })
  .describe('Contents and options of a mirror.')
  .superRefine(({ layout, heights, tip, blocks, transactions, records, sources = [], archive, list_root }, context) => {
    const misfit = (key: string, message: string) => context.addIssue({ code: 'custom', path: [key], message });
    if (blocks > transactions) misfit('blocks', `${blocks} blocks cannot have only ${transactions} transactions`);
    if (transactions > records) misfit('transactions', `${transactions} transactions cannot have only ${records} records`);
    const last = heights.at(-1)?.[1] ?? 0;
    if (tip !== undefined && tip.height < last) misfit('tip', `is below the block ${last}, which has activity`);
    const read = sources.find(({ rules }) => rules === 'ord')?.blocks.at(-1)?.[1] ?? 0;
    if (tip !== undefined && tip.height < read) misfit('sources', `have block ${read} of a node, above the tip ${tip.height}`);
    if ((layout === 'archive') !== (archive !== undefined)) misfit('archive', `does not fit layout ${layout}`);
    if (layout === 'archive' && list_root !== undefined) misfit('list_root', `does not fit layout ${layout}`);
  });
export type Manifest = z.infer<typeof manifest>;

/** Describes in one line why a file cannot be parsed or does not match its schema. */
export function misfitOf(error: unknown): string {
  const [issue] = error instanceof z.ZodError ? error.issues : [];
  return issue === undefined ? (messageOf(error).split('\n')[0] ?? '') : [issue.path.join('.'), issue.message].filter(Boolean).join(': ');
}
