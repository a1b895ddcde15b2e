/**
 * The build command's flags, and what they mean.
 */
import { availableParallelism } from 'node:os';
import { resolve, sep } from 'node:path';
import { type Command, type Flags, HELP, LOG } from '../cli/flags.ts';
import { MAX_INTEGER } from '../contract/fields.ts';
import { parseSiteUrl, SITE_URL_RULE } from '../contract/siteUrl.ts';
import { UsageError } from '../errors.ts';
import type { BlockRange } from '../input/blockRange.ts';
import { arePageSizes, DIALECTS, ENCODINGS, type Encoding, LAYOUTS } from '../pages/lists.ts';
import type { BuildOptions } from './options.ts';

export const BUILD_COMMAND: Command = {
  call: 'npm run build --',
  about: 'Turns rune activity records into a static JSON API: every page of every list as a file.',
  flags: [
    {
      heading: 'What goes in',
      name: 'input',
      value: 'PATH',
      repeatable: true,
      byDefault: 'input',
      about: 'A folder, a file or a glob of activity data.',
    },
    { name: 'blocks', value: 'A..B', byDefault: 'all', about: 'Only the blocks of these heights, both included; A.. and ..B are open.' },
    { heading: 'Where to', name: 'out', value: 'DIR', byDefault: 'dist', about: 'The output folder.' },
    { name: 'cache', value: 'DIR', byDefault: '.cache', about: 'What a build remembers for the next one, and working files.' },
    {
      heading: 'What comes out',
      name: 'layout',
      value: 'NAME',
      byDefault: 'files',
      about: 'files: a file for every page; packed: each record once, and an index.',
    },
    { name: 'dialect', value: 'NAME', byDefault: 'contract', about: 'How responses are spelled: contract or hiro.' },
    { name: 'page-sizes', value: 'LIST', byDefault: '20,60', about: 'Ascending; the first is the default limit, the last the maximum.' },
    {
      name: 'compress',
      value: 'LIST',
      byDefault: 'none',
      about: 'gz, br or gz,br: compressed files beside the pages, for nginx and Caddy.',
    },
    { name: 'parquet', about: 'Writes all records as Parquet files too, a file for each 100 heights, into activity/.' },
    { name: 'no-operation-pages', about: 'Leaves out the lists of a block by operation.' },
    { name: 'site-url', value: 'URL', about: 'The public address of the mirror, for absolute links in its feed.' },
    {
      heading: 'How it works',
      name: 'memory-limit',
      value: 'SIZE',
      byDefault: '1GB',
      about: 'About what a build may use; DuckDB spills to the cache folder before.',
    },
    { name: 'threads', value: 'N', byDefault: 'all cores', about: 'Threads to work with.' },
    { name: 'full', about: 'Build everything, and compare every file, whatever the cache says.' },
    { name: 'no-sync', about: 'Do not wait until the pages are on the disk. After a power cut, build with --full.' },
    { name: 'dry-run', about: 'Validate, render and count, but write nothing.' },
    LOG,
    HELP,
  ],
  examples: [
    { args: '', about: 'Builds the files in input/ into dist/; after a build, only what changed.' },
    { args: '--blocks 840000..849999 --layout packed', about: 'Ten thousand blocks, in few files.' },
    { args: '--input data --out site --dry-run', about: 'Checks the files in data/ and tells what would be written.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed'],
};

/** The options that the flags stand for. Throws a UsageError for a value that does not fit. */
export function buildOptions(flags: Flags): BuildOptions {
  const memoryLimit = flags.one('memory-limit') ?? '1GB';
  if (!/^[0-9]+(?:[.][0-9]+)? ?[KMGT]i?B$/.test(memoryLimit)) {
    throw new UsageError(`--memory-limit ${JSON.stringify(memoryLimit)} must be a size such as 500MB or 2GB`);
  }
  const inputs = flags.all('input');
  if (inputs.includes('')) throw new UsageError('--input has no value');
  const [out, cache] = [flags.one('out') ?? 'dist', flags.one('cache') ?? '.cache'];
  if (`${resolve(cache)}${sep}`.startsWith(`${resolve(out)}${sep}`)) {
    throw new UsageError(`--cache ${cache} is in the output folder ${out}, and would be published with it`);
  }
  const blocks = flags.one('blocks');
  return {
    blocks: blocks === undefined ? undefined : parseRange(blocks),
    inputs: inputs.length === 0 ? ['input'] : inputs,
    out,
    cache,
    site: {
      layout: flags.choice('layout', LAYOUTS),
      dialect: flags.choice('dialect', DIALECTS),
      pageSizes: parsePageSizes(flags.one('page-sizes') ?? '20,60'),
      operationPages: !flags.has('no-operation-pages'),
      compress: parseEncodings(flags.one('compress')),
      parquet: flags.has('parquet'),
    },
    siteUrl: siteUrlOf(flags.one('site-url')),
    memoryLimit,
    threads: flags.integer('threads', availableParallelism(), 1, 256),
    full: flags.has('full'),
    dryRun: flags.has('dry-run'),
    sync: !flags.has('no-sync'),
  };
}

function siteUrlOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = parseSiteUrl(text);
  if (url === undefined) throw new UsageError(`--site-url ${JSON.stringify(text)} ${SITE_URL_RULE}`);
  return url;
}

function parseRange(text: string): BlockRange {
  const [, from = '', to = ''] = /^([0-9]{1,15})?[.][.]([0-9]{1,15})?$/.exec(text) ?? [];
  const range = { from: from === '' ? 0 : Number(from), to: to === '' ? MAX_INTEGER : Number(to) };
  if ((from === '' && to === '') || range.from > range.to) {
    throw new UsageError(`--blocks ${JSON.stringify(text)} must be a range of heights, such as 840000..849999, 840000.. or ..849999`);
  }
  return range;
}

function parseEncodings(text: string | undefined): readonly Encoding[] {
  if (text === undefined || text === 'none') return [];
  const given = text.split(',');
  const encodings = ENCODINGS.filter((encoding) => given.includes(encoding));
  if (encodings.length !== given.length) throw new UsageError(`--compress ${JSON.stringify(text)} must be gz, br, gz,br or none`);
  return encodings;
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
