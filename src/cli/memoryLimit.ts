/**
 * The flag `--memory-limit`, and the check that Node.js stays within it. DuckDB keeps to its part by itself
 * (store/duckdb.ts).
 */
import { getHeapStatistics } from 'node:v8';
import { bytesOf, DEFAULT_MEMORY } from '../contract/memorySize.ts';
import { EXIT, UsageError } from '../errors.ts';
import type { Flag, Flags } from './flags.ts';
import type { Log } from './log.ts';

export const MEMORY_LIMIT: Flag = {
  name: 'memory-limit',
  value: 'SIZE',
  byDefault: DEFAULT_MEMORY,
  about: 'Memory of the process, give or take 200 MB. Before it is reached, DuckDB moves data to temporary files.',
};

/** Bytes below which Node.js alone is above the limit. */
const LEAST = 50e6;

/** Returns the value of the flag. Throws a UsageError when it is not a size, or too small for any work. */
export function memoryLimitOf(flags: Flags): string {
  const size = flags.one('memory-limit') ?? DEFAULT_MEMORY;
  if ((bytesOf(size) ?? 0) >= LEAST) return size;
  throw new UsageError(`--memory-limit ${JSON.stringify(size)} must be a size of at least 50MB, such as 500MB or 2GB`);
}

/** Milliseconds between two looks. V8 does not fill the space above the limit in this time. */
const LOOK_MS = 100;

/** Part of V8's own limit, above which V8 might end the process without a word. */
const MOST_OF_HEAP = 0.6;

/**
 * Ends the process with an error and advice when Node.js alone needs more memory than the limit, or almost as much as V8
 * allows. What was written stays, as after a kill. Returns a function that stops the looks.
 */
export function watchMemory(limit: string, log: Log): () => void {
  const most = bytesOf(limit) ?? Number.POSITIVE_INFINITY;
  const mostOfHeap = MOST_OF_HEAP * getHeapStatistics().heap_size_limit;
  const timer = setInterval(() => {
    const { heapUsed, external } = process.memoryUsage();
    if (heapUsed + external <= most && heapUsed <= mostOfHeap) return;
    log.error(
      `Node.js needs more memory than --memory-limit ${limit} allows: ${Math.round((heapUsed + external) / 1e6)} MB`,
      ['Raise --memory-limit, and with it the limit of Node.js: NODE_OPTIONS=--max-old-space-size=MEGABYTES.'],
      EXIT.buildFailed,
    );
    process.exit(EXIT.buildFailed);
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
