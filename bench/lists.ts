/**
 * Measures lists by rune and by address: full builds with and without these lists, the bytes that a build writes for a
 * new block, and answers. Usage: `npx tsx bench/lists.ts <folder> [records] [layout] [records of a block]`. The folder
 * is removed at the end. In layout `files`, the input loses its oldest block when it gets a new block.
 */

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { build } from '../src/engine/build.ts';
import type { BuildOptions } from '../src/engine/buildOptions.ts';
import { LIMITS } from '../src/limits.ts';
import type { Layout } from '../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../src/serve/fetchHost.ts';
import { type AnswerCost, measure } from './answers.ts';
import { generate } from './generate.ts';

const ANSWERS = 200;
const quiet = { info: () => undefined, summary: () => undefined, notice: () => undefined, error: () => undefined };

function optionsOf(folder: string, layout: Layout, lists: boolean): BuildOptions {
  const site = { layout, dialect: 'contract', pageSizes: [20, 60], operationPages: true, parquet: false } as const;
  const out = join(folder, lists ? 'with-lists' : 'without-lists');
  const sizes = { objectSize: (layout === 'files' ? 0.125 : 8) * 1024 * 1024, memoryLimit: '1GB', threads: 2 };
  const flags = {
    lists,
    limits: LIMITS,
    keys: [],
    clock: () => new Date(),
    full: false,
    dryRun: false,
    changesDialect: false,
    sync: false,
    siteUrl: undefined,
    blocks: undefined,
  };
  return { inputs: [join(folder, 'input')], out, cache: `${out}.cache`, site, ...sizes, ...flags };
}

/** Runs a build, and prints its seconds and the files that it wrote. */
async function timed(name: string, options: BuildOptions): Promise<void> {
  const begin = performance.now();
  const start = Date.now();
  const { manifest } = await build(options, quiet);
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  const added = readdirSync(options.out, { recursive: true, encoding: 'utf8' }).filter((path) => {
    const stats = statSync(join(options.out, path));
    return stats.isFile() && stats.ctimeMs >= start;
  });
  const sizeOf = (paths: readonly string[]) => {
    const bytes = paths.reduce((sum, path) => sum + statSync(join(options.out, path)).size, 0);
    return `${paths.length} files ${bytes} bytes`;
  };
  const archived = added.filter((path) => path.startsWith('archive/'));
  console.log(
    `${name}: ${seconds} s, ${manifest.files} files ${manifest.bytes} bytes; written ${sizeOf(added)}, of these in archive/ ${sizeOf(archived)}`,
  );
}

/**
 * Writes a runes table for the generated records into `folder`. With it, builds also have etchings, balances and
 * holders.
 */
async function writeRunes(generated: string, folder: string): Promise<void> {
  const connection = await (await DuckDBInstance.create()).connect();
  const terms = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((one) => `NULL::VARCHAR AS terms_${one}`);
  await connection.run(`COPY (
    SELECT DISTINCT rune_id AS id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, etched AS block_height,
      sha256('block ' || etched) AS block_hash, 1 AS tx_index, sha256('etching ' || rune_id) AS tx_id, 5 AS divisibility, '0' AS premine,
      '¤' AS symbol, ${terms.join(', ')}, false AS turbo, false AS cenotaph, ("timestamp" - (block_height - etched) * 600)::BIGINT AS "timestamp"
    FROM (SELECT *, split_part(rune_id, ':', 1)::BIGINT AS etched FROM '${generated}/*.parquet')) TO '${folder}/runes.parquet'`);
  connection.closeSync();
}

interface Manifest {
  readonly heights: readonly [[number, number]];
  readonly blocks: number;
  readonly records: number;
  readonly lists?: { readonly balances?: object };
}

interface Found {
  readonly rune: { readonly id: string; readonly name: string };
  readonly address?: string;
}

/**
 * Returns requests for lists of the runes and addresses in a sample of records from all blocks, and of the rune with
 * most of these records.
 */
async function targetsIn(out: string): Promise<[kind: string, targets: string[]][]> {
  const mirror = new FetchMirror(async (path) => new Response(readFileSync(join(out, path)), { headers: { etag: '"x"' } }), 1e9);
  const { heights, blocks, records, lists } = JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')) as Manifest;
  const [[first, last]] = heights;
  const found: Found[] = [];
  for (let i = 0; found.length < ANSWERS; i += 1) {
    const target = `/runes/v1/blocks/${first + ((i * 61) % (last - first + 1))}/activity?limit=1&offset=${(i * 997) % Math.floor((records / blocks) * 0.8)}`;
    const answer = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    const { results } = JSON.parse((await answer?.text()) ?? '') as { results: Found[] };
    for (const record of results) if (record.address !== undefined) found.push(record);
  }
  const counts = new Map<string, number>();
  for (const { rune } of found) counts.set(rune.id, (counts.get(rune.id) ?? 0) + 1);
  const [[heavy = ''] = []] = [...counts].sort(([, a], [, b]) => b - a);
  const each = (make: (record: Found, i: number) => string) => found.map((record, i) => `/runes/v1/${make(record, i)}`);
  const kinds: [string, string[]][] = [
    ['a rune', each(({ rune }) => `etchings/${rune.id}/activity?limit=20`)],
    ['a rune, 60 records', each(({ rune }) => `etchings/${rune.id}/activity?limit=60`)],
    ['a rune by its name', each(({ rune }) => `etchings/${rune.name}/activity?limit=20`)],
    ['windows of a heavy rune', each((_, i) => `etchings/${heavy}/activity?limit=60&offset=${i * 7}`)],
    ['an address', each(({ address }) => `addresses/${address}/activity?limit=20`)],
    ['an address, 60 records', each(({ address }) => `addresses/${address}/activity?limit=60`)],
    ['a rune and an address', each(({ rune, address }) => `etchings/${rune.id}/activity/${address}?limit=20`)],
    ['an etching', each(({ rune }) => `etchings/${rune.id}`)],
    ['an unknown address', each((_, i) => `addresses/nobody${i}/activity`)],
  ];
  if (lists?.balances === undefined) return kinds;
  return [
    ...kinds,
    ['balances of an address', each(({ address }) => `addresses/${address}/balances`)],
    ['holders of a rune', each(({ rune }) => `etchings/${rune.id}/holders`)],
  ];
}

const shown = ({ kind, p50, p99, reads, rounds, bytes }: AnswerCost): string =>
  `${kind}: CPU ${p50} ms (99 %: ${p99}), reads ${reads.join(' to ')}, rounds ${rounds.join(' to ')}, bytes ${bytes.join(' to ')}`;

async function main(folder: string, records: number, layout: Layout, perBlock: number | undefined): Promise<void> {
  const input = join(folder, 'input');
  try {
    const { newest, replaced, oldest } = await generate(records, join(folder, 'generated'), ['parquet'], 'real', perBlock);
    const generated = join(folder, 'generated/parquet');
    mkdirSync(input, { recursive: true });
    const isBase = (name: string) => !name.startsWith(`${newest}.`) && !replaced.some((one) => name.startsWith(`${one}.`));
    for (const name of readdirSync(generated).filter(isBase)) copyFileSync(join(generated, name), join(input, name));
    await writeRunes(generated, input);
    for (const lists of [false, true]) await timed(`build, lists ${lists}`, optionsOf(folder, layout, lists));
    copyFileSync(join(generated, `${newest}.parquet`), join(input, `${newest}.parquet`));
    if (layout === 'files') rmSync(join(input, `${oldest}.parquet`));
    for (const lists of [false, true]) await timed(`a new block, lists ${lists}`, optionsOf(folder, layout, lists));
    const { out } = optionsOf(folder, layout, true);
    console.log(`peak memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MB`);
    for (const [kind, targets] of await targetsIn(out)) {
      for (const isWarm of [false, true])
        console.log(shown(await measure(out, `${kind}, ${isWarm ? 'root' : 'nothing'} in memory`, targets, isWarm)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [, , folder, records = '1000000', layout = 'archive', perBlock] = process.argv;
if (folder === undefined) throw new Error('usage: npx tsx bench/lists.ts <folder> [records]');
void main(folder, Number(records), layout === 'files' ? 'files' : 'archive', perBlock === undefined ? undefined : Number(perBlock));
