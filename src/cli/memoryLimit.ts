/**
 * Parses the flag `--memory-limit`, and keeps Node.js within the limit. DuckDB enforces its part of the limit by itself
 * (duckdb/store.ts).
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { bytesOf, DEFAULT_MEMORY } from '../contract/memorySize.ts';
import { EXIT, UsageError } from '../errors.ts';
import { type Flag, type Flags, flag } from './flags.ts';
import type { Log } from './log.ts';

export const MEMORY_LIMIT: Flag = flag(
  'memory-limit SIZE',
  'Memory of the process, give or take 200 MB. Before it is reached, DuckDB moves data to temporary files.',
  { byDefault: DEFAULT_MEMORY },
);

/** Smallest accepted limit, in bytes. Below it, Node.js alone would exceed the limit. */
const LEAST = 50e6;

/** Returns the value of the flag. Throws a UsageError if it is not a size, or too small for any work. */
export function memoryLimitOf(flags: Flags): string {
  const size = flags.one('memory-limit') ?? DEFAULT_MEMORY;
  if ((bytesOf(size) ?? 0) >= LEAST) return size;
  throw new UsageError(`--memory-limit ${JSON.stringify(size)} must be a size of at least 50MB, such as 500MB or 2GB`);
}

/** Milliseconds between checks. In so short a time, memory cannot grow from MOST_OF_HEAP to V8's own limit. */
const LOOK_MS = 100;

/** Maximum share of V8's own heap limit that may be in use. Above it, V8 might end the process without a message. */
const MOST_OF_HEAP = 0.6;

/** Share of the memory limit above which garbage is collected. It is small, because DuckDB uses most of the limit. */
const COLLECTED = 0.25;

/** Factor by which memory must grow between two garbage collections, because each collection takes time. */
const GROWTH = 1.4;

/**
 * Returns a function that collects garbage. Without such calls, V8 lets garbage grow to the size of the live data, or
 * to gigabytes.
 */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/**
 * Memory that a process of this program uses before it does any work, in bytes: Node.js, DuckDB's library and the
 * modules.
 */
const PROCESS_BYTES = 130e6;

/**
 * Returns the memory limit for further work in this process, such as a build after a pull, so that the whole process
 * stays within `limit`. Subtracts the memory that the process uses already, including freed memory that it has not
 * returned to the system. Returns at least half of `limit`.
 */
export function memoryBeside(limit: string): string {
  const [all, held] = [bytesOf(limit) ?? 0, process.memoryUsage.rss() - PROCESS_BYTES];
  return `${Math.floor(Math.max(all / 2, all - Math.max(0, held)) / 1e6)}MB`;
}

/**
 * Memory that Node.js uses, in bytes: JavaScript objects, garbage and buffers. Asks V8, because process.memoryUsage()
 * opens a file and so throws when too many are open.
 */
const bytesInUse = (): number => {
  const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
  return heap + buffers;
};

/**
 * Collects garbage before Node.js fills its part of the memory limit. Ends the process with an error and advice if live
 * data alone exceeds the limit, or is almost as large as V8 allows. Written files stay, as after a kill. Returns a
 * function that stops the checks.
 */
export function watchMemory(limit: string, log: Log): () => void {
  const most = Math.min(bytesOf(limit) ?? Number.POSITIVE_INFINITY, MOST_OF_HEAP * getHeapStatistics().heap_size_limit);
  const collect = collector();
  let next = COLLECTED * most;
  const timer = setInterval(() => {
    if (bytesInUse() <= next) return;
    collect();
    const used = bytesInUse();
    next = Math.min(Math.max(COLLECTED * most, GROWTH * used), most);
    if (used <= most) return;
    log.error(
      `Node.js needs more memory than --memory-limit ${limit} allows: ${Math.round(used / 1e6)} MB`,
      ['Raise --memory-limit, and with it the limit of Node.js: NODE_OPTIONS=--max-old-space-size=MEGABYTES.'],
      EXIT.buildFailed,
    );
    process.exit(EXIT.buildFailed);
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
