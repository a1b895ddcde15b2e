/**
 * Measures answers: CPU time and files read per kind of request. Runs the code that the workers run. Files are read
 * synchronously, so that all CPU time of an answer falls between its start and its end.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_PATH } from '../src/pages/filePaths.ts';
import { FetchMirror } from '../src/serve/fetchHost.ts';

/** Cost of one kind of request. */
export interface AnswerCost {
  readonly kind: string;
  readonly requests: number;
  /** CPU milliseconds per answer: median, 99th percentile and maximum. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /**
   * Median and maximum, per answer, of the reads, the rounds of reads, and the bytes read. All reads that run at the
   * same time are one round.
   */
  readonly reads: readonly [number, number];
  readonly rounds: readonly [number, number];
  readonly bytes: readonly [number, number];
}

/**
 * To count rounds, some requests of each kind run with slow reads: number of these requests, and milliseconds of each
 * slow read.
 */
const [SLOW_ANSWERS, SLOW_READ_MS] = [5, 100];

/** Yields `count` integers, evenly spread from 0 to `below` - 1. They are the same in every run. */
function* spread(count: number, below: number): Generator<number> {
  for (let i = 0; i < count; i += 1) yield Math.floor((((i + 1) * 0.6180339887498949) % 1) * below);
}

/** Measures `count` requests of each kind to the build in `root`. */
export async function measureAnswers(root: string, count: number): Promise<AnswerCost[]> {
  const manifest = JSON.parse(readFileSync(join(root, MANIFEST_PATH), 'utf8')) as Manifest;
  const limit = manifest.page_sizes.at(-1) ?? 0;
  const heights = manifest.heights.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));
  const someHeights = [...spread(count, heights.length)].map((at) => heights[at]);
  const block = (height: number | undefined, query: string) => `/runes/v1/blocks/${height}/activity?${query}`;
  const mirror = new FetchMirror((path, range) => Promise.resolve(partOfFile(join(root, path), range)), Number.POSITIVE_INFINITY);
  const ask = async (target: string) => {
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    return (await response?.json()) as { total: number; results: { location: { tx_id: string; block_hash: string } }[] };
  };
  const places = await Promise.all(
    someHeights.map(async (height, i) => {
      const { total } = await ask(block(height, 'limit=1'));
      const { results } = await ask(block(height, `limit=1&offset=${(i * 7919) % total}`));
      return results[0]?.location;
    }),
  );
  const ids = places.map((place) => place?.tx_id ?? '');
  const kinds: [string, string[]][] = [
    ['a transaction', ids.map((id) => `/runes/v1/transactions/${id}/activity`)],
    ['an unknown transaction', ids.map((id) => `/runes/v1/transactions/${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}/activity`)],
    ['a block by its hash', places.map((place) => `/runes/v1/blocks/${place?.block_hash}/activity`)],
    ['an unaligned window of a block', someHeights.map((height, i) => block(height, `limit=${limit}&offset=${1 + (i % 1000)}`))],
    ['a page of a block', someHeights.map((height) => block(height, `limit=${limit}`))],
    [
      'an unaligned window of an operation',
      someHeights.map((height, i) => block(height, `limit=${limit}&offset=${1 + (i % 300)}&operation_type=send`)),
    ],
  ];
  const costs: AnswerCost[] = [];
  for (const [kind, targets] of kinds) {
    costs.push(await measure(root, `${kind}, manifest and root in memory`, targets, true));
    costs.push(await measure(root, `${kind}, nothing in memory`, targets, false));
  }
  return costs;
}

interface Manifest {
  readonly page_sizes: readonly number[];
  readonly heights: readonly (readonly [number, number])[];
}

/** Returns a file, or the part of the file that a Range header selects. */
function partOfFile(path: string, range: string | undefined): Response {
  const [, start, end] = /^bytes=([0-9]+)-([0-9]+)$/.exec(range ?? '') ?? [];
  try {
    if (start === undefined) return new Response(readFileSync(path), { headers: { etag: '"x"' } });
    const part = Buffer.allocUnsafeSlow(Number(end) - Number(start) + 1);
    const handle = openSync(path, 'r');
    try {
      const length = readSync(handle, part, 0, part.length, Number(start));
      return new Response(part.subarray(0, length), { status: 206, headers: { 'content-range': `bytes ${start}-${end}/*` } });
    } finally {
      closeSync(handle);
    }
  } catch {
    return new Response(null, { status: 404 });
  }
}

/**
 * Measures the requests for `targets`. If `isWarm` is true, the manifest and the root of the archive are already in
 * memory.
 */
async function measure(root: string, kind: string, targets: readonly string[], isWarm: boolean): Promise<AnswerCost> {
  let [reads, bytes, delay] = [0, 0, 0];
  const fetchFile = async (path: string, range?: string): Promise<Response> => {
    reads += 1;
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    const response = partOfFile(join(root, path), range);
    const content = await response.arrayBuffer();
    bytes += content.byteLength;
    return new Response(response.status === 404 ? null : content, response);
  };
  const times: number[] = [];
  const found = { reads: [] as number[], rounds: [] as number[], bytes: [] as number[] };
  const ask = async (target: string): Promise<number> => {
    const mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
    // Makes the mirror read the manifest and the root. The mirror has no block of this height, so it reads no other
    // file.
    if (isWarm) await mirror.answer(new Request('http://127.0.0.1/runes/v1/blocks/16777210/activity'));
    [reads, bytes] = [0, 0];
    const [start, begin] = [performance.now(), process.cpuUsage()];
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    await response?.arrayBuffer();
    const { user, system } = process.cpuUsage(begin);
    if (response?.status !== 200) throw new Error(`unexpected status ${response?.status} for ${target}`);
    times.push((user + system) / 1000);
    found.reads.push(reads);
    found.bytes.push(bytes);
    return performance.now() - start;
  };
  // The duration of an answer, divided by the delay of a slow read, is the number of rounds.
  delay = SLOW_READ_MS;
  for (const target of targets.slice(0, SLOW_ANSWERS)) found.rounds.push(Math.floor((await ask(target)) / SLOW_READ_MS));
  delay = 0;
  // Lets the compiler optimise the code first, because the code of a long-running worker is optimised too.
  for (const target of targets.slice(0, 300)) await ask(target);
  for (const list of [times, found.reads, found.bytes]) list.length = 0;
  for (const target of targets) await ask(target);
  const at = (list: number[], part: number) => {
    const sorted = list.sort((a, b) => a - b);
    return Number((sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(3));
  };
  return {
    kind,
    requests: targets.length,
    p50: at(times, 0.5),
    p99: at(times, 0.99),
    max: at(times, 1),
    reads: [at(found.reads, 0.5), at(found.reads, 1)],
    rounds: [at(found.rounds, 0.5), at(found.rounds, 1)],
    bytes: [at(found.bytes, 0.5), at(found.bytes, 1)],
  };
}
