/** Flags of the build command, and their conversion to options. */
import { availableParallelism } from 'node:os';
import { resolve, sep } from 'node:path';
import { CONFIG, type Command, type Flags, flag, HELP, LOG } from '../cli/flags.ts';
import { MEMORY_LIMIT, memoryLimitOf } from '../cli/memoryLimit.ts';
import { MAX_INTEGER } from '../contract/fields.ts';
import { parseSiteUrl, SITE_URL_RULE } from '../contract/plainUrl.ts';
import { UsageError } from '../errors.ts';
import { MOST_OBJECT } from '../format/root.ts';
import type { BlockRange } from '../input/blocksRead.ts';
import { LIMITS } from '../limits.ts';
import { KEY_VARIABLE, keyVariable, parseSigningKey, readSigningKey } from '../output/signingKeys.ts';
import { arePageSizes, type Dialect, LAYOUTS } from '../pages/mirrorOptions.ts';
import { program } from '../program.ts';
import type { BuildOptions, LastBlocks } from './buildOptions.ts';

export const BUILD_COMMAND: Command = {
  section: 'build',
  call: program.callOf('build'),
  about: 'Turns rune activity records into a static JSON API: every page of every list as a file.',
  flags: [
    flag('input PATH', 'A folder, a file or a glob with activity data.', { heading: 'Input', byDefault: 'input', repeatable: true }),
    flag('blocks RANGE', 'Builds only some heights: A..B, A.., ..B, or -N.. for the last N, which reads the input twice.', {
      byDefault: 'all',
    }),
    flag('out DIR', 'The output folder.', { heading: 'Folders', byDefault: 'dist' }),
    flag('cache DIR', 'The cache folder: state for the next build, and temporary files.', { byDefault: '.cache' }),
    flag('layout NAME', 'files: one file per page; archive: each record once, compressed, in few files.', {
      heading: 'Output',
      byDefault: 'files',
    }),
    flag(
      'dialect NAME',
      'Spelling of hashes: 0x, which puts 0x before them, or hiro, as clients of Hiro expect them. contract is another name of 0x.',
      { byDefault: '0x' },
    ),
    flag('change-dialect', 'Allows this build to replace a mirror in the other dialect.'),
    flag('page-sizes LIST', 'Page sizes, ascending; the first is the default limit, the last the maximum.', { byDefault: '20,60' }),

    flag('object-size SIZE', 'Largest size of the files of layout archive, 4KB to 64MB. Up to 1MB, readers need no ranges.', {
      byDefault: '8MB',
    }),
    flag('lists', 'Adds lists: activity by rune and by address, balances, holders, outputs. The default of layout archive.'),
    flag('no-lists', 'Omits these lists, so that etchings are the only list. The default of layout files.'),
    flag('no-rows', 'Omits rows/: the ledger rows of the input as Parquet files, for other mirrors and for analysts.'),
    flag('no-operation-pages', 'Omits the lists of a block by operation.'),
    flag('site-url URL', 'The public URL of the mirror, for links in its feed and error page.'),
    flag('key-file FILE', 'Signs layout archive with the private key in this file, which keygen made.', {
      byDefault: `${KEY_VARIABLE} in the environment, if set`,
      repeatable: true,
    }),
    { heading: 'Resources and runs', ...MEMORY_LIMIT },
    flag('threads N', 'Number of threads.', { byDefault: 'all cores' }),
    flag('full', 'Ignores the cache: builds everything and compares every file.'),
    flag('no-sync', 'Does not wait until the pages are on the disk. After a power cut, build with --full.'),
    flag('dry-run', 'Validates, renders and counts, but writes nothing.'),
    CONFIG,
    LOG,
    HELP,
  ],
  examples: [
    { args: '', about: 'Builds input/ into dist/. Later runs write only what changed.' },
    { args: '--blocks 840000..849999 --layout archive', about: 'Builds ten thousand blocks into few files.' },
    { args: '--input data --out site --dry-run', about: 'Checks the files in data/ and reports what would be written.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Maximum size of a file of lists in layout `files`, in bytes. It is small for readers that can only fetch whole files. */
const LIST_OBJECT = 128 * 1024;

/** Converts flags to options. Throws a UsageError for an invalid value. */
export function buildOptions(flags: Flags, limits = LIMITS): BuildOptions {
  const memoryLimit = memoryLimitOf(flags);
  const inputs = flags.all('input');
  if (inputs.includes('')) throw new UsageError('--input has no value');
  const [out, cache] = [flags.one('out') ?? 'dist', flags.one('cache') ?? '.cache'];
  const keyFiles = flags.all('key-file');
  for (const [name, path] of [['cache', cache] as const, ...keyFiles.map((file) => ['key-file', file] as const)])
    if (`${resolve(path)}${sep}`.startsWith(`${resolve(out)}${sep}`))
      throw new UsageError(`--${name} ${path} is in the output folder ${out}, and would be published with it`);
  const blocks = flags.one('blocks');
  const layout = flags.choice('layout', LAYOUTS);
  if (layout === 'archive' && flags.has('no-operation-pages'))
    throw new UsageError('--no-operation-pages cannot be used with --layout archive, in which lists by operation take no space');
  if (layout === 'files' && flags.has('object-size')) throw new UsageError('--object-size can only be used with --layout archive');
  if (flags.has('lists') && flags.has('no-lists')) throw new UsageError('--lists and --no-lists contradict each other');
  const variable = keyVariable() ?? '';
  const keys = [
    ...(variable === '' ? [] : [parseSigningKey(variable, `the environment variable ${KEY_VARIABLE}`)]),
    ...keyFiles.map(readSigningKey),
  ];
  if (layout === 'files' && keys.length > 0)
    throw new UsageError(
      `--key-file and ${KEY_VARIABLE} can only be used with --layout archive; with --layout files, a signature cannot cover the pages`,
    );
  return {
    blocks: blocks === undefined ? undefined : parseRange(blocks),
    inputs,
    out,
    cache,
    site: {
      layout,
      dialect: dialectOf(flags),
      pageSizes: parsePageSizes(flags.one('page-sizes') ?? '20,60'),
      operationPages: !flags.has('no-operation-pages'),
      parquet: !flags.has('no-rows'),
    },
    objectSize: layout === 'files' ? LIST_OBJECT : parseObjectSize(flags.one('object-size') ?? '8MB'),
    lists: flags.has('lists') || (layout === 'archive' && !flags.has('no-lists')),
    siteUrl: siteUrlOf(flags),
    memoryLimit,
    threads: flags.integer('threads', availableParallelism(), 1, 256),
    full: flags.has('full'),
    changesDialect: flags.has('change-dialect'),
    dryRun: flags.has('dry-run'),
    sync: !flags.has('no-sync'),
    limits,
    keys,
    clock: () => new Date(),
  };
}

/** Returns the dialect that flags name. Throws a UsageError for another name. */
export const dialectOf = (flags: Flags): Dialect => (flags.choice('dialect', ['0x', 'contract', 'hiro']) === 'hiro' ? 'hiro' : 'contract');

/** Parses a size from 4 KB to MOST_OBJECT. KB and MB are powers of 1,024. */
function parseObjectSize(text: string): number {
  const [, number, unit = ''] = /^([0-9]{1,6})([KM])B$/.exec(text) ?? [];
  const bytes = Number(number) * 1024 ** ('KM'.indexOf(unit) + 1);
  if (bytes >= 4096 && bytes <= MOST_OBJECT) return bytes;
  throw new UsageError(`--object-size ${JSON.stringify(text)} must be a size from 4KB to 64MB, such as 256KB or 8MB`);
}

/** Returns the public URL that flags name. Throws a UsageError if it is none. */
export function siteUrlOf(flags: Flags): string | undefined {
  const text = flags.one('site-url');
  if (text === undefined) return undefined;
  const url = parseSiteUrl(text);
  if (url === undefined) throw new UsageError(`--site-url ${JSON.stringify(text)} ${SITE_URL_RULE}`);
  return url;
}

function parseRange(text: string): BlockRange | LastBlocks {
  const last = Number(/^-([0-9]{1,15})[.][.]$/.exec(text)?.[1] ?? 0);
  if (last > 0) return { last };
  const [, from = '', to = ''] = /^([0-9]{1,15})?[.][.]([0-9]{1,15})?$/.exec(text) ?? [];
  const range = { from: from === '' ? 0 : Number(from), to: to === '' ? MAX_INTEGER : Number(to) };
  if ((from === '' && to === '') || range.from > range.to) {
    throw new UsageError(
      `--blocks ${JSON.stringify(text)} must be a range of heights, such as 840000..849999, 840000.. or ..849999, or -2016.. for the last 2016`,
    );
  }
  return range;
}

function parsePageSizes(text: string): readonly number[] {
  const sizes = text.split(',').map((size) => (/^[0-9]{1,6}$/.test(size) ? Number(size) : Number.NaN));
  if (!arePageSizes(sizes)) {
    throw new UsageError(
      `--page-sizes ${JSON.stringify(text)} must be ascending whole numbers from 1 to 100000, such as 20,60 or 20,60,1000`,
    );
  }
  return sizes;
}
