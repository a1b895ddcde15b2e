/** Parses the flag `--memory-limit`, and keeps Node.js within it. DuckDB enforces its part by itself (duckdb/store.ts). */
import { PerformanceObserver } from 'node:perf_hooks';
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

/** Share of V8's own heap limit above which V8 might end the process without a message. */
const MOST_OF_HEAP = 0.6;

/** Memory that a process uses before it does any work, in bytes: Node.js, DuckDB's library and the modules. */
const PROCESS_BYTES = 130e6;

/** Returns the limit for further work in this process, such as a build after a pull: `limit` without held memory, but at least half. */
export function memoryBeside(limit: string): string {
  const [all, held] = [bytesOf(limit) ?? 0, process.memoryUsage.rss() - PROCESS_BYTES];
  return `${Math.floor(Math.max(all / 2, all - Math.max(0, held)) / 1e6)}MB`;
}

/** Memory of objects, garbage and buffers, in bytes. process.memoryUsage() opens a file, so it throws if too many are open. */
const bytesInUse = (): number => {
  const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
  return heap + buffers;
};

/**
 * Ends the process with advice if live data exceeds the limit, or almost V8's own. Looks whenever V8 has collected garbage, if only young
 * objects: V8 may not collect old ones again before the heap is several times as large. Written files stay, as after a kill. Returns a
 * function that stops the checks.
 */
export function watchMemory(limit: string, log: Log): () => void {
  const most = Math.min(bytesOf(limit) ?? Number.POSITIVE_INFINITY, MOST_OF_HEAP * getHeapStatistics().heap_size_limit);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const observer = new PerformanceObserver(() => {
    if (bytesInUse() <= most) return;
    collect();
    const used = bytesInUse();
    if (used <= most) return;
    log.error(
      `Node.js needs more memory than --memory-limit ${limit} allows: ${Math.round(used / 1e6)} MB`,
      ['Raise --memory-limit, and with it the limit of Node.js: NODE_OPTIONS=--max-old-space-size=MEGABYTES.'],
      EXIT.buildFailed,
    );
    process.exit(EXIT.buildFailed);
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => observer.disconnect();
}
