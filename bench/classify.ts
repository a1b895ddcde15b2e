/**
 * Measures how many requests, bytes and milliseconds a client needs to classify outputs: `npx tsx bench/classify.ts
 * <folder> [outputs]`. The folder has a build with unspent outputs. The client begins with nothing in memory but its
 * code. In the measurement `mixed`, a third of the outputs have runes, a third are spent, and a third have no runes. In
 * `without runes`, the mirror has no records of their transactions, as for most outputs of wallets.
 */

import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { documentsOf } from '../src/engine/archive/documentWriter.ts';
import { StoredArchive } from '../src/engine/archive/storedArchive.ts';
import { parseOutput } from '../src/lists/unspentOutputs.ts';
import type { MirrorOptions, OutputToClassify } from '../src/serve/client/client.d.ts';
import { Mirror } from '../src/serve/client/mirrorClient.ts';
import { MANIFEST } from '../test/support/archives.ts';
import { KEY, signedFiles } from '../test/support/lyingHost.ts';
import { randomFor } from '../test/support/seed.ts';

const [out = 'dist', count = '1000'] = process.argv.slice(2);
const random = randomFor('outputs to classify');
const manifest = readFileSync(join(out, MANIFEST));
const { tip } = JSON.parse(String(manifest)) as { tip: { height: number } };

/** Returns `size` entries of a sequence, chosen at random with equal probability. */
function sample<Entry>(entries: Iterable<Entry>, size: number): Entry[] {
  const chosen: Entry[] = [];
  let seen = 0;
  for (const entry of entries) {
    seen += 1;
    const at = Math.floor(random() * seen);
    if (chosen.length < size) chosen.push(entry);
    else if (at < size) chosen[at] = entry;
  }
  return chosen;
}

/** Costs so far: requests, the largest number of requests at the same time (`most`), bytes, and paths of the files. */
const cost = { requests: 0, most: 0, bytes: 0, files: new Set<string>() };
let running = 0;

const fetchFile: typeof fetch = async (input, init) => {
  const path = decodeURIComponent(new URL(String(input)).pathname.slice(1));
  cost.requests += 1;
  running += 1;
  cost.most = Math.max(cost.most, running);
  cost.files.add(path);
  await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
  running -= 1;
  if (path === MANIFEST) return new Response(new Uint8Array(signed));
  const at = join(out, path);
  const size = statSync(at).size;
  const [, from = '0', to = String(size - 1)] = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get('range') ?? '') ?? [];
  const bytes = new Uint8Array(Number(to) - Number(from) + 1);
  const file = openSync(at, 'r');
  readSync(file, bytes, 0, bytes.length, Number(from));
  closeSync(file);
  cost.bytes += bytes.length;
  return new Response(bytes, { status: bytes.length === size ? 200 : 206, headers: { 'content-range': `bytes ${from}-${to}/${size}` } });
};
/** Simulated delay of each answer of the host, in milliseconds. */
const DELAY_MS = 30;
const signed = signedFiles(new Map([[MANIFEST, manifest]]), new Date().toISOString()).get(MANIFEST) ?? manifest;

async function measure(name: string, outputs: readonly OutputToClassify[], options: MirrorOptions): Promise<void> {
  Object.assign(cost, { requests: 0, most: 0, bytes: 0, files: new Set() });
  const mirror = new Mirror('http://mirror/', { fetch: fetchFile, ...options });
  const [begin, used] = [performance.now(), process.cpuUsage()];
  const classes = await mirror.classify(outputs);
  const [ms, cpu] = [performance.now() - begin, process.cpuUsage(used)];
  const kinds: Record<string, number> = {};
  for (const { kind } of classes) kinds[kind] = (kinds[kind] ?? 0) + 1;
  console.log(
    `${name}: ${outputs.length} outputs, ${JSON.stringify(kinds)}: ${cost.requests} requests of ${cost.files.size} files, ${cost.bytes} bytes, ` +
      `${Math.round(ms)} ms (${DELAY_MS} ms an answer, up to ${cost.most} at the same time), ${Math.round((cpu.user + cpu.system) / 1000)} ms of CPU, ` +
      `RSS ${Math.round(process.memoryUsage().rss / 1e6)} MB`,
  );
}

const archive = StoredArchive.in(out);
const third = Math.ceil(Number(count) / 3);
const levels = archive.root.lists?.outputs?.outputs ?? [];
const unspent = sample(
  levels.flatMap((level) => [...documentsOf(archive, level)]),
  third,
).flatMap(({ key, values }): OutputToClassify[] => {
  const found = parseOutput(key, values);
  return found === undefined ? [] : [{ outpoint: key, height: found.place[0], blockHash: found.place[1] }];
});
const mirror = new Mirror('http://mirror/', { fetch: fetchFile });
/** Outputs of transactions with records, in random blocks. Most of these outputs are spent or never had runes. */
const others: OutputToClassify[] = [];
while (others.length < 2 * third) {
  const height = Math.floor(random() * tip.height);
  const { results } = await mirror.activity({ block: height, limit: 60 });
  for (const { operation, location } of sample(results, 5)) {
    const vout = operation === 'receive' && random() < 0.7 ? (location.vout ?? 0) : 7;
    others.push({ outpoint: `${location.tx_id}:${vout}`, height, blockHash: location.block_hash });
  }
}
const plain = Array.from({ length: Number(count) }, (): OutputToClassify => {
  const txId = Array.from({ length: 64 }, () => Math.floor(random() * 16).toString(16)).join('');
  return { outpoint: `${txId}:0`, height: Math.floor(random() * tip.height) };
});
console.log(`${out}: ${levels.length} levels, ${archive.root.segments.length} segments`);
for (const keys of [undefined, [KEY.publicText]]) {
  const name = keys === undefined ? 'without keys' : 'with keys';
  await measure(`${name}, mixed`, [...unspent, ...others].slice(0, Number(count)), { keys });
  await measure(`${name}, without runes`, plain, { keys });
  await measure(`${name}, one of each kind`, [...unspent.slice(0, 1), ...others.slice(0, 2)], { keys });
}
