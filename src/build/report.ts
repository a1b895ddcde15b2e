/**
 * What a build says: lines for people, and the figures for programs.
 */
import { count, type Log } from '../cli/log.ts';
import type { Manifest } from '../contract/schemas.ts';
import type { Loaded } from '../input/load.ts';
import type { BlockChanges } from '../state/update.ts';
import type { BuildOptions } from './build.ts';
import { peakMegabytes, type Stopwatch } from './stopwatch.ts';

export interface BuildResult {
  readonly manifest: Manifest;
  /** Files of written blocks that were there already with the same bytes. */
  readonly kept: number;
  /** Files of an earlier build that are no more. */
  readonly removed: number;
  readonly blocks: Pick<BlockChanges, 'written' | 'gone'>;
  /** Whether everything was built, and not what had changed. */
  readonly wasFull: boolean;
}

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
  const result = { manifest, kept: 0, removed: 0, blocks: { written: 0, gone: 0 }, wasFull: false };
  log.info('built', `The input has not changed, and ${options.out} was left as it is, in ${clock.total} s.`, figures(result, clock));
  return result;
}

export function reportBuilt(options: BuildOptions, result: BuildResult, clock: Stopwatch, log: Log): void {
  log.info(options.dryRun ? 'dry-run' : 'built', message(options, result, clock.total), figures(result, clock));
}

function message({ dryRun, out }: BuildOptions, { manifest, kept, removed, blocks, wasFull }: BuildResult, seconds: number): string {
  const megabytes = (manifest.bytes / 1e6).toFixed(1);
  const digits = manifest.transaction_prefix;
  const index = digits === undefined ? '' : ` and ${count(16 ** digits, 'index file')}`;
  const what = `${count(manifest.files, 'file')} (${megabytes} MB)${index} of ${count(manifest.transactions, 'transaction')} and ${count(manifest.blocks, 'block')}`;
  if (dryRun) return `Dry run: would write ${what} to ${out}. Nothing was written.`;
  const removals = removed === 0 ? '' : ` ${count(removed, 'old file')} removed.`;
  if (!wasFull)
    return `Brought ${out} up to date: ${count(blocks.written, 'block')} written, ${blocks.gone} gone, now ${what}, in ${seconds} s.${removals}`;
  return `Wrote ${what} to ${out} in ${seconds} s.${kept === 0 ? '' : ` ${count(kept, 'file')} were as they should be.`}${removals}`;
}

const figures = ({ manifest, kept, removed, blocks, wasFull }: BuildResult, clock: Stopwatch) => ({
  ...manifest,
  kept,
  removed,
  blocks_written: blocks.written,
  blocks_gone: blocks.gone,
  full: wasFull,
  seconds: clock.seconds,
  cpu_seconds: clock.cpuSeconds,
  total_seconds: clock.total,
  peak_rss_mb: peakMegabytes(),
});
