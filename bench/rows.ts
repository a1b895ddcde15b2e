/**
 * Measures a pull of published rows from another mirror: `npx tsx bench/rows.ts BLOCKS RUNS FOLDER`. Invents a mirror
 * with BLOCKS blocks of 975 rows, serves it from this process, and pulls it RUNS times. Prints the time of each pull,
 * and the CPU time and memory of its processes. FOLDER, by default a temporary folder, keeps the mirror for the next
 * run.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv } from 'node:process';
import type { FolderIndex, Kind } from '../src/contract/rowsSchemas.ts';
import { Store } from '../src/duckdb/store.ts';
import { commitIndex, placeFile } from '../src/rows/rowsFolder.ts';
import { contentOf, copyTable, HEIGHTS_PER_FILE, NODE_LEDGER, RUNES } from '../src/rows/rowsForm.ts';
import { nameNumber, nameText } from '../src/runes/name.ts';
import { runProcess, start } from '../test/support/cli.ts';
import { startPlainFiles } from '../test/support/plainFiles.ts';
import { cpuSecondsOf, residentOf } from './load/processes.ts';

const [blocks, runs] = [Number(argv[2] ?? 1000), Number(argv[3] ?? 3)];
const folder = argv[4] ?? mkdtempSync(join(tmpdir(), 'rows-'));
const FIRST = 840_000;
/** Number of transactions in each block, by kind. */
const [MOVES, ETCHINGS, MINTS] = [120, 25, 235];

/** Returns SQL of the address of an output of move `i`. `n` is the number of the output, counted over all blocks. */
const owner = (n: string): string => `'bc1p' || left(sha256('owner ' || i || ' ' || (${n})), 58)`;

/**
 * Returns SQL of the rows of the blocks from `from` up to, not including, `to`. Each move spends the second output of
 * the move with the same index in the previous block. The first block has premines instead of moves. A block mints
 * runes that the previous block etched.
 */
const rowsOf = (from: number, to: number): string => `
  WITH blocks AS (SELECT b FROM range(${from}, ${to}) r(b)),
  moves AS (SELECT b, i, e, 1 + i AS tx_index, ${FIRST} || ':' || (1 + i) AS rune_id FROM blocks, range(${MOVES}) r(i), range(4) s(e)),
  events AS (
    SELECT b, tx_index, e, rune_id, sha256('move ' || i || ' ' || b) AS tx_id, e // 2 AS "output",
      CASE WHEN e % 2 = 0 THEN ${owner('2 * b + e // 2')} ELSE ${owner('2 * b - 1')} END AS address,
      CASE WHEN e % 2 = 1 THEN ${owner('2 * b + e // 2')} END AS receiver_address, CASE WHEN e < 2 THEN 3 ELSE 1000000000 - 3 * b END AS amount,
      CASE WHEN e % 2 = 0 THEN 'receive' ELSE 'send' END AS operation,
      CASE WHEN e = 0 THEN sha256('move ' || i || ' ' || (b - 1)) || ':1:' || ${owner('2 * b - 1')} END AS spent
    FROM moves WHERE b > 0
    UNION ALL SELECT b, tx_index, e, rune_id, sha256('move ' || i || ' ' || b), CASE WHEN e = 1 THEN 1 END,
      CASE WHEN e = 1 THEN ${owner('1')} END, NULL, CASE WHEN e = 1 THEN 1000000000 END, CASE WHEN e = 0 THEN 'etching' ELSE 'receive' END, NULL
    FROM moves WHERE b = 0 AND e < 2
    UNION ALL SELECT b, 200 + i, 0, (${FIRST} + b) || ':' || (200 + i), sha256('etching ' || i || ' ' || b), NULL, NULL, NULL, NULL, 'etching', NULL
    FROM blocks, range(${ETCHINGS}) r(i)
    UNION ALL SELECT b, 300 + i, e, (${FIRST} + b - 1) || ':' || (200 + i % 8), sha256('mint ' || i || ' ' || b), CASE WHEN e = 1 THEN 0 END,
      CASE WHEN e = 1 THEN ${owner('b')} END, NULL, 100, CASE WHEN e = 0 THEN 'mint' ELSE 'receive' END, NULL
    FROM blocks, range(${MINTS}) r(i), range(2) s(e) WHERE b > 0)
  SELECT rune_id, sha256('block ' || b) AS block_hash, ${FIRST} + b AS block_height, tx_index, e AS event_index, tx_id, "output"::BIGINT AS "output",
    address, receiver_address, amount::VARCHAR AS amount, operation, 1713571767 + 600 * b AS "timestamp", spent FROM events`;

/** Returns SQL of the runes. `named` is a table that has the name of each rune number. */
const runesOf = (named: string): string => {
  const isMoved = `i < ${MOVES}`;
  const values: Readonly<Record<string, string>> = {
    id: `(${FIRST} + b) || ':' || tx_index`,
    number: 'i',
    spaced_name: 'name',
    divisibility: '(i % 9)::BIGINT',
    block_hash: `sha256('block ' || b)`,
    block_height: `${FIRST} + b`,
    tx_id: `CASE WHEN ${isMoved} THEN sha256('move ' || i || ' 0') ELSE sha256('etching ' || (tx_index - 200) || ' ' || b) END`,
    premine: `CASE WHEN ${isMoved} THEN '1000000000' ELSE '0' END`,
    symbol: `'¤'`,
    turbo: 'false',
    cenotaph: 'false',
    terms_amount: `CASE WHEN NOT ${isMoved} THEN '100' END`,
    terms_cap: `CASE WHEN NOT ${isMoved} THEN '1000' END`,
    timestamp: '1713571767 + 600 * b',
  };
  const cells = RUNES.fields.map(
    ({ column }) => `${values[column] ?? (column.startsWith('terms_') ? 'NULL::VARCHAR' : column)} AS "${column}"`,
  );
  return `SELECT ${cells.join(', ')} FROM (
    SELECT i, name, CASE WHEN ${isMoved} THEN 0 ELSE (i - ${MOVES}) // ${ETCHINGS} END AS b,
      CASE WHEN ${isMoved} THEN 1 + i ELSE 200 + (i - ${MOVES}) % ${ETCHINGS} END AS tx_index FROM ${named})`;
};

/** Writes the same folder as a pull from a node. */
async function writeInput(pulled: string): Promise<void> {
  const work = join(pulled, '.work');
  mkdirSync(work, { recursive: true });
  const store = await Store.open({ memoryLimit: '2GB', threads: 2, scratch: join(folder, 'scratch') });
  const base = nameNumber('AAAAAAAAAAAAA');
  const names = Array.from({ length: MOVES + ETCHINGS * blocks }, (_, i) => [i, nameText(base + BigInt(i))] as const);
  const named = await store.append('names', { i: 'BIGINT', name: 'VARCHAR' }, names);
  const made = join(work, 'made.parquet');
  const place = async (kind: Kind, rows: string, first: number, last: number) => {
    const form = kind === 'runes' ? RUNES : NODE_LEDGER;
    await store.run(copyTable(rows, form.order, made));
    return placeFile(pulled, made, kind, { first, last }, await contentOf(made, form, store));
  };
  const height = FIRST + blocks - 1;
  const runes = [await place('runes', runesOf(`${named}`), FIRST, height)];
  const files = [];
  for (let from = 0; from < blocks; from += HEIGHTS_PER_FILE) {
    const to = Math.min(from + HEIGHTS_PER_FILE, blocks);
    files.push(await place('files', rowsOf(from, to), FIRST + from, FIRST + to - 1));
  }
  store.close();
  const hash = createHash('sha256')
    .update(`block ${blocks - 1}`)
    .digest('hex');
  const sources: FolderIndex['sources'] = [{ rules: 'ord', blocks: [[FIRST, height]] }];
  commitIndex(pulled, { version: 1, sources, tip: { height, hash }, network: 'main', spent: true, runes, files }, join(work, 'index.json'));
}

/** Builds the mirror to pull from, unless it exists. */
async function makeMirror(): Promise<string> {
  const [pulled, dist] = [join(folder, 'pulled'), join(folder, 'dist')];
  if (existsSync(join(dist, 'runes/v1/manifest.json'))) return dist;
  await writeInput(pulled);
  const args = ['--input', pulled, '--out', dist, '--cache', join(folder, 'cache'), '--layout', 'archive', '--memory-limit', '2GB'];
  const { code, stdout, stderr } = await runProcess('build', args, folder);
  if (code !== 0) throw new Error(stdout + stderr);
  return dist;
}

/** Pulls the mirror into a new folder, and prints time, CPU time and memory. */
async function measurePull(from: string): Promise<void> {
  const to = join(folder, 'input');
  rmSync(to, { recursive: true, force: true });
  const begin = performance.now();
  const child = start('pull', ['--from', from, '--to', to, '--rate', '0', '--log', 'json'], folder);
  let [stdout, stderr, cpu, peak] = ['', '', 0, 0];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  // Samples the CPU time while the pull runs: the processes that read rows are killed at the end, and their CPU time is
  // then lost.
  const look = setInterval(() => {
    cpu = Math.max(cpu, cpuSecondsOf([child.pid ?? 0]) ?? 0);
    peak = Math.max(peak, residentOf([child.pid ?? 0]) ?? 0);
  }, 50);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(look);
  if (code !== 0) throw new Error(`the pull ended with exit code ${String(code)}: ${stderr}`);
  const seconds = (performance.now() - begin) / 1000;
  const { records, bytes } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as { readonly records: number; readonly bytes: number };
  const rate = (of: number) => `${Math.round(records / of).toLocaleString('en-US')} rows/s, ${(bytes / of / 1e6).toFixed(1)} MB/s`;
  console.log(
    `${records.toLocaleString('en-US')} rows of ${(bytes / 1e6).toFixed(0)} MB in ${seconds.toFixed(1)} s: ${rate(seconds)}; ` +
      `CPU ${cpu.toFixed(1)} s: ${rate(cpu)}; peak RSS ${Math.round(peak / 1e6)} MB`,
  );
}

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const host = await startPlainFiles(await makeMirror());
  try {
    for (let run = 0; run < runs; run += 1) await measurePull(host.base);
  } finally {
    await host.close();
    if (argv[4] === undefined) rmSync(folder, { recursive: true });
  }
}

void main();
