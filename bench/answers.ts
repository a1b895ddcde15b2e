/**
 * Measures answers: CPU time and files read per kind of request, with the code that the workers run. Files are read
 * synchronously, so that all CPU time of an answer falls between its start and its end.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FetchMirror } from '../src/hosts/fetch.ts';
import { BLOCKS_FOLDER, MANIFEST_PATH, POINTERS_FOLDER, TRANSACTIONS_FOLDER } from '../src/pages/paths.ts';

/** Cost of one kind of request. */
export interface AnswerCost {
  readonly kind: string;
  readonly requests: number;
  /** CPU milliseconds per answer: median, 99th percentile and maximum. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Least and most files read for an answer. */
  readonly reads: readonly [number, number];
}

/** Yields `count` integers, evenly spread from 0 to `below` - 1 and the same in every run. */
function* spread(count: number, below: number): Generator<number> {
  for (let i = 0; i < count; i += 1) yield Math.floor((((i + 1) * 0.6180339887498949) % 1) * below);
}

/** Returns `count` tx ids, spread over the output. */
function someTransactions(root: string, layout: string, count: number): string[] {
  const names = readdirSync(join(root, TRANSACTIONS_FOLDER)).filter((name) => name.endsWith('.json'));
  if (layout === 'files') return [...spread(count, names.length)].map((at) => names[at]?.slice(0, -5) ?? '');
  return [...spread(count, names.length)].map((at, i) => {
    const ids = [...readFileSync(join(root, TRANSACTIONS_FOLDER, names[at] ?? ''), 'latin1').matchAll(/\n"([0-9a-fx]+)"/g)];
    return ids[i % Math.max(ids.length, 1)]?.[1] ?? '';
  });
}

/** Measures `count` requests of each kind over the build in `root`. */
export async function measureAnswers(root: string, count: number): Promise<AnswerCost[]> {
  const { layout, page_sizes } = JSON.parse(readFileSync(join(root, MANIFEST_PATH), 'utf8')) as { layout: string; page_sizes: number[] };
  const limit = page_sizes.at(-1) ?? 0;
  const heights = readdirSync(join(root, layout === 'packed' ? POINTERS_FOLDER : BLOCKS_FOLDER)).filter((name) =>
    /^[0-9]+[.]json$/.test(name),
  );
  const someHeights = [...spread(count, heights.length)].map((at) => heights[at]?.slice(0, -5));
  const transactions = someTransactions(root, layout, count);
  const block = (height: string | undefined, query: string) => `/runes/v1/blocks/${height}/activity?${query}`;
  const kinds: [string, string[]][] = [
    ['a transaction', transactions.map((id) => `/runes/v1/transactions/${id}/activity`)],
    [
      'an unknown transaction',
      transactions.map((id) => `/runes/v1/transactions/${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}/activity`),
    ],
    ['an unaligned window of a block', someHeights.map((height, i) => block(height, `limit=${limit}&offset=${1 + (i % 1000)}`))],
    ['a page of a block', someHeights.map((height) => block(height, `limit=${limit}`))],
    [
      'an unaligned window of an operation',
      someHeights.map((height, i) => block(height, `limit=${limit}&offset=${1 + (i % 300)}&operation_type=send`)),
    ],
  ];
  const costs: AnswerCost[] = [];
  for (const [kind, targets] of kinds) costs.push(await measure(root, kind, targets));
  return costs;
}

async function measure(root: string, kind: string, targets: readonly string[]): Promise<AnswerCost> {
  let reads = 0;
  const fetchFile = (path: string): Promise<Response> => {
    if (path !== MANIFEST_PATH) reads += 1;
    try {
      return Promise.resolve(new Response(readFileSync(join(root, path)), { headers: { etag: '"x"' } }));
    } catch {
      return Promise.resolve(new Response(null, { status: 404 }));
    }
  };
  let mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
  const times: number[] = [];
  const numbers: number[] = [];
  const ask = async (target: string): Promise<void> => {
    reads = 0;
    const begin = process.cpuUsage();
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    await response?.arrayBuffer();
    const { user, system } = process.cpuUsage(begin);
    if (response?.status !== 200) throw new Error(`unexpected status ${response?.status} for ${target}`);
    times.push((user + system) / 1000);
    numbers.push(reads);
  };
  // Warm up: a worker also keeps compiled code. The measured requests below start with empty caches.
  for (const target of targets.slice(0, 300)) await ask(target);
  times.length = 0;
  numbers.length = 0;
  for (const target of targets) {
    mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
    // Load the manifest first: an instance reads it only once.
    await mirror.answer(new Request('http://127.0.0.1/runes/v1/blocks/0/activity?limit=0'));
    await ask(target);
  }
  const sorted = times.sort((a, b) => a - b);
  const at = (part: number) => Number((sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(3));
  return { kind, requests: targets.length, p50: at(0.5), p99: at(0.99), max: at(1), reads: [Math.min(...numbers), Math.max(...numbers)] };
}
