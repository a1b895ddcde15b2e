/** Reports of a build: text for people, fields for programs (`--log json`). */
import { count, type Log, type SummaryRow } from '../cli/log.ts';
import { costRows, peakMegabytes, type Stopwatch } from '../cli/stopwatch.ts';
import type { Manifest } from '../contract/schemas.ts';
import { describeSources } from '../contract/sources.ts';
import { printable } from '../duckdb/duckdbErrors.ts';
import type { Loaded } from '../input/loadInput.ts';
import { dialectName } from '../pages/mirrorOptions.ts';
import type { BuildOptions } from './buildOptions.ts';
import type { BlockChanges } from './state/updateState.ts';

export interface BuildResult {
  readonly manifest: Manifest;
  /** Number of files that the manifest counts and that this build did not write, because they had the same bytes. */
  readonly kept: number;
  /** Number of written files that are not pages: index, digests, stats, site, manifest. */
  readonly othersWritten: number;
  /** Number of files of earlier builds that this build removed: pages, lists, assets and all others. */
  readonly removed: number;
  readonly blocks: BlockChanges['counts'];
  /** Why the build publishes no rows. */
  readonly whyNoRows?: string | undefined;
  /** True for a full build, false when only changed blocks were built. */
  readonly wasFull: boolean;
}

const writtenOf = ({ manifest, kept }: BuildResult): number => manifest.files - kept;

/** Reports the loaded input. `whyFull` is the reason for a full build; undefined for an incremental build. */
export function reportLoaded(loaded: Loaded, whyFull: string | undefined, seconds: number, log: Log): void {
  for (const notice of loaded.notices) log.notice(notice);
  const { files, filesRead } = loaded;
  const { records, blocks, transactions } = loaded.counts;
  log.info(
    'loaded',
    `Read ${count(records, 'record')} of ${count(blocks, 'block')} from ${files === filesRead ? '' : `${filesRead} of `}${count(files, 'file')} in ${seconds} s.`,
    { records, blocks, transactions, files, files_read: filesRead, full: whyFull ?? false },
  );
}

/** Reports a build that had nothing to do. Returns its result. */
export function reportUnchanged(options: BuildOptions, manifest: Manifest, clock: Stopwatch, log: Log): BuildResult {
  const result = { manifest, kept: manifest.files, othersWritten: 0, removed: 0, blocks: { written: 0, gone: 0 }, wasFull: false };
  log.info('built', `The input has not changed; ${options.out} is up to date (${clock.total} s).`, fieldsOf(result, clock));
  log.summary([
    ['covers', `${count(manifest.records, 'record')} of ${coverage(manifest)}`],
    ['dialect', dialectName(manifest.dialect)],
    ...noteRows(manifest),
  ]);
  return result;
}

export function reportBuilt(options: BuildOptions, result: BuildResult, clock: Stopwatch, log: Log): void {
  log.info(options.dryRun ? 'dry-run' : 'built', message(options, result, clock.total), fieldsOf(result, clock));
  log.summary([...contentRows(options, result), ...costRows(clock)]);
  if (options.site.layout === 'files' && result.manifest.files > MANY_FILES)
    log.notice(
      `${count(result.manifest.files, 'file')} are more than many hosts accept; --layout archive gives the same answers in few files`,
    );
}

/** Number of files above which a build recommends layout `archive`. GitHub Pages and Cloudflare allow fewer. */
const MANY_FILES = 100_000;

function contentRows({ dryRun, site }: BuildOptions, result: BuildResult): SummaryRow[] {
  const { manifest, kept, othersWritten, removed, blocks } = result;
  const number = (n: number) => n.toLocaleString('en-US');
  const rows = (changedBlocks: string, changedPages: string): SummaryRow[] => [
    ['records', number(manifest.records)],
    ['transactions', number(manifest.transactions)],
    ['blocks', `${number(manifest.blocks)}${changedBlocks}`],
    ['dialect', dialectName(manifest.dialect)],
    [manifest.archive === undefined && manifest.list_root === undefined ? 'pages' : 'files', `${number(manifest.files)}${changedPages}`],
    ['bytes', number(manifest.bytes)],
    ...noteRows(manifest),
  ];
  if (dryRun) return rows('', '');
  return [
    ...rows(
      `: ${number(blocks.written)} written, ${number(blocks.gone)} removed`,
      `: ${number(writtenOf(result))} written, ${number(kept)} kept`,
    ),
    ['other files', `${number(othersWritten)} written`],
    ...(site.parquet && manifest.rows === undefined ? [['rows', `not published: ${result.whyNoRows}`] as const] : []),
    ['removed', count(removed, 'file')],
  ];
}

function noteRows({ left_out: leftOut, lists, sources }: Manifest): SummaryRow[] {
  const rows: SummaryRow[] = [];
  if (leftOut !== undefined)
    rows.push(['left out', `${count(leftOut.rows, 'ledger row')} whose rune is not in the runes table: ${runesText(leftOut)}`]);
  const unbalanced = lists?.balances?.unbalanced;
  if (unbalanced !== undefined) {
    const runes = count(unbalanced.runes.length + unbalanced.more_runes, 'rune');
    rows.push(['unbalanced', `${runes} with a balance below zero, which is left out: ${runesText(unbalanced)}`]);
  }
  if (sources !== undefined) rows.push(['source', describeSources(sources)]);
  return rows;
}

function runesText({ runes, more_runes: more }: { readonly runes: readonly string[]; readonly more_runes: number }): string {
  return `${printable(runes.join(', '))}${more === 0 ? '' : ` and ${more.toLocaleString('en-US')} more`}`;
}

const coverage = ({ transactions, blocks }: Manifest): string => `${count(transactions, 'transaction')} and ${count(blocks, 'block')}`;

function message({ dryRun, out }: BuildOptions, result: BuildResult, seconds: number): string {
  const { manifest, kept, removed, blocks, wasFull } = result;
  const megabytes = (manifest.bytes / 1e6).toFixed(1);
  const what = `${count(manifest.files, 'file')} (${megabytes} MB) of ${coverage(manifest)}`;
  if (dryRun) return `Dry run: would write ${what} to ${out}. Nothing was written.`;
  const removals = removed === 0 ? '' : ` ${count(removed, 'old file')} removed.`;
  if (!wasFull)
    return `Updated ${out}: ${count(blocks.written, 'block')} written, ${blocks.gone} removed; it now has ${what}, in ${seconds} s.${removals}`;
  const [some, rest] = kept === 0 ? ['', ''] : [`${writtenOf(result).toLocaleString('en-US')} of `, ` ${count(kept, 'file')} unchanged.`];
  return `Wrote ${some}${what} to ${out} in ${seconds} s.${rest}${removals}`;
}

const fieldsOf = (result: BuildResult, clock: Stopwatch) => ({
  ...result.manifest,
  written: writtenOf(result),
  kept: result.kept,
  others_written: result.othersWritten,
  removed: result.removed,
  blocks_written: result.blocks.written,
  blocks_gone: result.blocks.gone,
  full: result.wasFull,
  seconds: clock.seconds,
  cpu_seconds: clock.cpuSeconds,
  total_seconds: clock.total,
  peak_rss_mb: peakMegabytes(),
});
