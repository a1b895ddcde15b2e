/**
 * The build, top to bottom: load and check the input, render it in batches of blocks, write the files, then the manifest.
 */
import type { Log } from '../cli/log.ts';
import type { Manifest } from '../contract/schemas.ts';
import { codeOf, messageOf } from '../errors.ts';
import { type Loaded, loadInput } from '../input/load.ts';
import type { Site } from '../pages/lists.ts';
import { MANIFEST_PATH, STATUS_PATH } from '../pages/paths.ts';
import { errorBody } from '../pages/respond.ts';
import { renderBatches } from '../render/batches.ts';
import { landingPage } from '../site/landing.ts';
import { Store, toNumber } from '../store/duckdb.ts';
import { SERVER_VERSION, VERSION } from '../version.ts';
import { claimOutput, inspectOutput, sweep } from '../write/outputFolder.ts';
import { WriterPool, writeFailure } from '../write/pool.ts';
import { DiskSink, type SinkTotals } from '../write/sinks.ts';
import { withScratch } from './scratch.ts';

export interface BuildOptions {
  /** Folders, files and globs, relative to the working directory. */
  readonly inputs: readonly string[];
  readonly out: string;
  readonly cache: string;
  readonly site: Site;
  /** DuckDB's limit, e.g. `1GB`. */
  readonly memoryLimit: string;
  readonly threads: number;
  readonly dryRun: boolean;
}

export interface BuildResult {
  readonly manifest: Manifest;
  /** Files that were there already with the same bytes. */
  readonly kept: number;
  /** Files of an earlier build that are no more. */
  readonly removed: number;
}

/**
 * Builds once. Throws an InputError before anything is written when the input or the output folder is not fit, and a BuildError when
 * writing fails; then what was written stays, and the next build goes on from it.
 */
export async function build(options: BuildOptions, log: Log): Promise<BuildResult> {
  const output = inspectOutput(options.out);
  return withScratch(options.cache, async (scratch) => {
    const store = await Store.open({ memoryLimit: options.memoryLimit, threads: options.threads, scratch });
    const pool = new WriterPool(writerThreads(options.threads), options.site, options.dryRun ? undefined : options.out);
    const clock = new Stopwatch();
    try {
      const loaded = await loadInput(options.inputs, [options.out, options.cache], scratch, store);
      for (const notice of loaded.notices) log.notice(notice);
      log.info(
        'loaded',
        `Read ${count(loaded.records, 'record')} of ${count(loaded.blocks, 'block')} from ${count(loaded.files, 'file')} in ${clock.lap('load')} s.`,
        { ...loaded },
      );

      if (!options.dryRun) claimOutput(options.out);
      const totals = await renderAndWrite(store, options.site, pool);
      clock.lap('write');
      const removed = options.dryRun || output !== 'ours' ? 0 : await sweep(options.out, options.site, store);
      const manifest = await describe(store, loaded, totals, options.site);
      if (!options.dryRun) writeOwnFiles(options.out, manifest);
      clock.lap('finish');
      report(options, { manifest, kept: totals.kept, removed }, clock, log);
      return { manifest, kept: totals.kept, removed };
    } finally {
      await pool.close();
      store.close();
    }
  });
}

/** One core renders while the others write: a second writer on one folder gains little (the folder's lock). */
const writerThreads = (threads: number): number => Math.min(4, Math.max(1, threads - 1));

async function renderAndWrite(store: Store, site: Site, pool: WriterPool): Promise<SinkTotals> {
  for await (const batch of renderBatches(store, site.dialect)) await pool.submit(batch);
  return pool.finish();
}

async function describe(store: Store, loaded: Loaded, totals: SinkTotals, site: Site): Promise<Manifest> {
  const runs = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last
     FROM (SELECT block_height, block_height - row_number() OVER (ORDER BY block_height) AS run FROM blocks) GROUP BY run ORDER BY first`,
  );
  return {
    generator: 'rune-activity-mirror',
    version: VERSION,
    layout: 'files',
    dialect: site.dialect,
    page_sizes: [...site.pageSizes],
    heights: runs.map((run) => [toNumber(run['first']), toNumber(run['last'])]),
    blocks: loaded.blocks,
    transactions: loaded.transactions,
    records: loaded.records,
    files: totals.files,
    bytes: totals.bytes,
  };
}

/** The files that are not pages; the manifest is the last file of a build. */
function writeOwnFiles(out: string, manifest: Manifest): void {
  const tip = manifest.heights.at(-1)?.[1] ?? 0;
  const status = { server_version: SERVER_VERSION, status: 'ready', block_height: tip };
  const sink = new DiskSink(out);
  try {
    sink.file('index.html', Buffer.from(landingPage(manifest)));
    // What a static host answers for a path that is none.
    sink.file('404.json', Buffer.from(errorBody(404, 'there is no such path in this API').body));
    sink.file(STATUS_PATH, Buffer.from(JSON.stringify(status)));
    sink.file(MANIFEST_PATH, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  } catch (error) {
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}

function report(options: BuildOptions, result: BuildResult, clock: Stopwatch, log: Log): void {
  const { manifest, kept, removed } = result;
  const what = `${count(manifest.files, 'file')} (${(manifest.bytes / 1e6).toFixed(1)} MB) of ${count(manifest.transactions, 'transaction')} and ${count(manifest.blocks, 'block')}`;
  const changes = kept + removed === 0 ? '' : ` ${kept} were there already, ${removed} old ones removed.`;
  const message = options.dryRun
    ? `Dry run: would write ${what} to ${options.out}. Nothing was written.`
    : `Wrote ${what} to ${options.out} in ${clock.total} s.${changes}`;
  log.info(options.dryRun ? 'dry-run' : 'built', message, { ...manifest, kept, removed, seconds: clock.laps });
}

const count = (n: number, what: string): string => `${n.toLocaleString('en-US')} ${what}${n === 1 ? '' : 's'}`;

/** Seconds by stage. */
class Stopwatch {
  readonly laps: Record<string, number> = {};
  readonly #start = performance.now();
  #last = this.#start;

  /** Ends a stage; returns its seconds. */
  lap(stage: string): number {
    const now = performance.now();
    const seconds = Number(((now - this.#last) / 1000).toFixed(2));
    this.laps[stage] = seconds;
    this.#last = now;
    return seconds;
  }

  get total(): string {
    return ((performance.now() - this.#start) / 1000).toFixed(1);
  }
}
