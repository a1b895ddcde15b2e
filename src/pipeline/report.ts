/**
 * What a build says: lines for people, and the figures for programs.
 */
import { count, type Log, type SummaryRow } from '../cli/log.ts';
import { costRows, peakMegabytes, type Stopwatch } from '../cli/stopwatch.ts';
import type { Manifest } from '../contract/schemas.ts';
import type { Loaded } from '../input/load.ts';
import { printable } from '../input/recognise.ts';
import type { BlockChanges } from '../state/update.ts';
import type { BuildOptions } from './options.ts';

export interface BuildResult {
  readonly manifest: Manifest;
  /** Files of pages that were there already with the same bytes. All others that the manifest counts were made or replaced. */
  readonly kept: number;
  /** Files besides those of pages that were made or replaced: index, digests, manifest, pages for people. */
  readonly othersWritten: number;
  /** Files of an earlier build that are no more, of all kinds. */
  readonly removed: number;
  readonly blocks: Pick<BlockChanges, 'written' | 'gone'>;
  /** Whether everything was built, and not what had changed. */
  readonly wasFull: boolean;
}

/** Files of pages that were made or replaced. */
const writtenOf = ({ manifest, kept }: BuildResult): number => manifest.files - kept;

export function reportLoaded(loaded: Loaded, whyFull: string | undefined, seconds: number, log: Log): void {
  for (const notice of loaded.notices) log.notice(notice);
  const { records, blocks, transactions, files, filesRead } = loaded;
  log.info(
    'loaded',
    `Read ${count(records, 'record')} of ${count(blocks, 'block')} from ${files === filesRead ? '' : `${filesRead} of `}${count(files, 'file')} in ${seconds} s.`,
    { records, blocks, transactions, files, filesRead, full: whyFull ?? false },
  );
}

export function reportUnchanged(options: BuildOptions, manifest: Manifest, clock: Stopwatch, log: Log): BuildResult {
  const result = { manifest, kept: manifest.files, othersWritten: 0, removed: 0, blocks: { written: 0, gone: 0 }, wasFull: false };
  log.info('built', `The input has not changed, and ${options.out} was left as it is, in ${clock.total} s.`, figures(result, clock));
  log.summary([['holds', `${count(manifest.records, 'record')} of ${holdings(manifest)}`], ...leftOutRows(manifest)]);
  return result;
}

export function reportBuilt(options: BuildOptions, result: BuildResult, clock: Stopwatch, log: Log): void {
  log.info(options.dryRun ? 'dry-run' : 'built', message(options, result, clock.total), figures(result, clock));
  log.summary([...contentRows(options, result), ...costRows(clock)]);
}

function contentRows({ dryRun }: BuildOptions, result: BuildResult): SummaryRow[] {
  const { manifest, kept, othersWritten, removed, blocks } = result;
  const number = (n: number) => n.toLocaleString('en-US');
  const rows = (changedBlocks: string, changedPages: string): SummaryRow[] => [
    ['records', number(manifest.records)],
    ['transactions', number(manifest.transactions)],
    ['blocks', `${number(manifest.blocks)}${changedBlocks}`],
    ['pages', `${number(manifest.files)}${changedPages}`],
    ['bytes', number(manifest.bytes)],
    ...leftOutRows(manifest),
  ];
  if (dryRun) return rows('', '');
  return [
    ...rows(
      `: ${number(blocks.written)} rendered, ${number(blocks.gone)} gone`,
      `: ${number(writtenOf(result))} written, ${number(kept)} kept`,
    ),
    ['other files', `${number(othersWritten)} written`],
    ['removed', count(removed, 'file')],
  ];
}

function leftOutRows({ left_out: leftOut }: Manifest): SummaryRow[] {
  if (leftOut === undefined) return [];
  const { rows, runes, more_runes: more } = leftOut;
  const shown = printable(runes.join(', '));
  const which = `${shown}${more === 0 ? '' : ` and ${more.toLocaleString('en-US')} more`}`;
  return [['left out', `${count(rows, 'ledger row')} whose rune is not in the runes table: ${which}`]];
}

const holdings = ({ transactions, blocks }: Manifest): string => `${count(transactions, 'transaction')} and ${count(blocks, 'block')}`;

function message({ dryRun, out }: BuildOptions, result: BuildResult, seconds: number): string {
  const { manifest, kept, removed, blocks, wasFull } = result;
  const megabytes = (manifest.bytes / 1e6).toFixed(1);
  const digits = manifest.transaction_prefix;
  const index = digits === undefined ? '' : ` and ${count(16 ** digits, 'index file')}`;
  const what = `${count(manifest.files, 'file')} (${megabytes} MB)${index} of ${holdings(manifest)}`;
  if (dryRun) return `Dry run: would write ${what} to ${out}. Nothing was written.`;
  const removals = removed === 0 ? '' : ` ${count(removed, 'old file')} removed.`;
  if (!wasFull)
    return `Brought ${out} up to date: ${count(blocks.written, 'block')} written, ${blocks.gone} gone, now ${what}, in ${seconds} s.${removals}`;
  const [some, rest] =
    kept === 0 ? ['', ''] : [`${writtenOf(result).toLocaleString('en-US')} of `, ` ${count(kept, 'file')} were as they should be.`];
  return `Wrote ${some}${what} to ${out} in ${seconds} s.${rest}${removals}`;
}

const figures = (result: BuildResult, clock: Stopwatch) => ({
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
