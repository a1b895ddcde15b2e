/**
 * One pull from its beginning to its end: the lock, the source, and what is said of it.
 */
import { setMaxListeners } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import { costRows, peakMegabytes, Stopwatch } from '../cli/stopwatch.ts';
import { CliError, codeOf, EXIT, InputError } from '../errors.ts';
import { Store } from '../store/duckdb.ts';
import { withLock } from '../store/lock.ts';
import { Client, type ClientOptions } from './client.ts';
import { PULLED_FOLDER, WORK_FOLDER } from './held.ts';
import { HttpSource } from './http.ts';
import { findManifest, MirrorSource } from './mirror.ts';
import { DatabaseSource } from './postgres.ts';
import { type PullOptions, type PullResult, pull } from './pull.ts';
import type { Source } from './source.ts';
import { writeError } from './write.ts';

/** What a user asks for. */
export interface PullRequest extends PullOptions, Omit<ClientOptions, 'onRetry'> {
  /** A `postgres:` or an `http(s):` URL; the latter is the address before `/runes/v1`, or with it. */
  readonly from: URL;
}

/** What DuckDB and this program may use. A file's rows are sorted in it, or spilled. */
const MEMORY_LIMIT = '700MB';

/** Pulls. Throws as pull() does, a LockedError when another pull is at work in the folder, and an error of its own when it was told to stop. */
export async function pullFrom(request: PullRequest, log: Log, progress: Progress): Promise<PullResult> {
  const clock = new Stopwatch();
  // Each request or connection listens to it for as long as it works, which Node takes for a leak when there are more than ten.
  setMaxListeners(request.concurrency + 10, request.signal);
  const folder = join(request.to, PULLED_FOLDER);
  const work = openWork(folder);
  const store = await Store.open({ memoryLimit: MEMORY_LIMIT, threads: availableParallelism(), scratch: work });
  const lock = { path: join(work, 'lock'), name: 'pull_lock', what: `the folder ${folder}`, flag: '--to', worker: 'pull' };
  let source: Source | undefined;
  try {
    return await withLock(store, lock, async () => {
      clearWork(folder, work);
      source = await openSource(request, folder, store, log);
      const result = await pull(request, source, store, log, progress);
      progress.end();
      report(result, request.to, clock, log);
      return result;
    });
  } catch (error) {
    // Whatever failed on the way: it was told to stop, and stopped.
    throw request.signal.aborted ? new InterruptedError() : error;
  } finally {
    progress.end();
    await source?.close();
    store.close();
    closeWork(work);
  }
}

class InterruptedError extends CliError {
  override readonly name = 'InterruptedError';
  constructor() {
    super('stopped; what was fetched is kept, and the same command goes on from here', EXIT.interrupted);
  }
}

async function openSource(request: PullRequest, folder: string, store: Store, log: Log): Promise<Source> {
  const { from, concurrency, signal } = request;
  if (from.protocol.startsWith('postgres')) {
    const onNotice = (message: string) => log.notice(message);
    return new DatabaseSource({ url: from.href, folder, connections: concurrency, store, signal, onNotice });
  }
  const client = new Client({ ...request, onRetry: (why) => log.notice(`${why}; trying again`) });
  const base = from.href.replace(/\/+$/, '').replace(/\/runes(?:\/v1)?$/, '');
  const manifest = await findManifest(base, client);
  return manifest === undefined ? new HttpSource(base, client, folder) : new MirrorSource(base, manifest, client, folder);
}

/** The folder for working files and the lock. */
function openWork(folder: string): string {
  const work = resolve(folder, WORK_FOLDER);
  try {
    mkdirSync(work, { recursive: true });
  } catch (error) {
    if (['EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')) throw new InputError(`${folder} is no folder`, ['Name another with --to.']);
    throw writeError(folder, error);
  }
  return work;
}

/** Removes what a pull that was killed left behind. */
function clearWork(folder: string, work: string): void {
  try {
    for (const name of readdirSync(work)) if (name !== 'lock') rmSync(join(work, name), { recursive: true, force: true });
  } catch (error) {
    throw writeError(folder, error);
  }
}

/** Removes the folder for working files, unless somebody uses it by now. */
function closeWork(work: string): void {
  try {
    rmdirSync(work);
  } catch {
    // Another pull is at work in it.
  }
}

function report(result: PullResult, to: string, clock: Stopwatch, log: Log): void {
  const seconds = clock.total;
  const { blocks, records, bytes, replaced, held } = result;
  const runs = held.map(({ first, last }) => `${first}..${last}`);
  const size = (bytes / 1e6).toFixed(1);
  const shown = runs.length > 5 ? [...runs.slice(0, 4), `${runs.length - 4} more runs`] : runs;
  const fetched = blocks === 0 ? 'Nothing was fetched' : `Fetched ${count(blocks, 'block')} with ${count(records, 'record')} (${size} MB)`;
  log.info('pulled', `${fetched} in ${seconds} s. ${join(to, PULLED_FOLDER)} holds blocks ${shown.join(', ') || 'none'}.`, {
    blocks,
    records,
    bytes,
    replaced,
    seconds,
    peak_rss_mb: peakMegabytes(),
    held: held.map(({ first, last }) => [first, last]),
  });
  const number = (n: number) => n.toLocaleString('en-US');
  if (blocks > 0) {
    log.summary([
      ['blocks', `${number(blocks)} fetched, ${number(replaced)} of those held are others now`],
      ['records', number(records)],
      ['bytes', number(bytes)],
      ...costRows(clock),
    ]);
  }
  const others = existsSync(to)
    ? readdirSync(to).filter((name) => name !== PULLED_FOLDER && !name.startsWith('.') && !name.endsWith('.md'))
    : [];
  if (others.length > 0) {
    log.notice(
      `${to} also holds ${others.slice(0, 3).join(', ')}${others.length > 3 ? ' ...' : ''}, which a build reads too; remove the sample if it is that`,
    );
  }
}
