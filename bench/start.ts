/**
 * Measures how a mirror starts from another mirror: `npx tsx bench/start.ts OUTPUTS RUNES DISK_MS FOLDER`. Invents a
 * mirror with OUTPUTS unspent outputs and RUNES runes, and runs the real commands with a simulated node. The first
 * command is a pull that starts from the mirror's ledger, checks 15,000 outputs and reads the newest blocks. The second
 * command is a build. The node takes DISK_MS milliseconds for each output, one after the other. FOLDER, by default a
 * temporary folder, keeps the mirror for the next run.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv } from 'node:process';
import { Store } from '../src/duckdb/store.ts';
import { addressOf } from '../src/runes/address.ts';
import { nameNumber, nameText } from '../src/runes/name.ts';
import { NETWORKS } from '../src/runes/networks.ts';
import { ROOT, start } from '../test/support/cli.ts';
import { chainOf, startNodeProcess } from '../test/support/fakeNode.ts';
import { hash256 } from '../test/support/memoryLedger.ts';
import { startPlainFiles } from '../test/support/plainFiles.ts';
import { cpuSecondsOf } from './load/processes.ts';
import { MADE, OWNERS, scriptOf, TIP } from './startNode.ts';

const [outputs, runes, diskMs] = [Number(argv[2] ?? 100_000), Number(argv[3] ?? 1000), Number(argv[4] ?? 0.1)];
const folder = argv[5] ?? mkdtempSync(join(tmpdir(), 'start-'));
const chain = chainOf(0, new Array(TIP + 1).fill([]));
const hashAt = (height: number): string => chain[height]?.hash ?? '';

/** Runs a command to its end, and prints its time and memory. Returns its output. */
async function measure(what: string, command: string, args: readonly string[], mayFail = false): Promise<string> {
  const begin = performance.now();
  const child = start(command, args, folder);
  let [text, cpu, peak] = ['', 0, 0];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const look = setInterval(() => {
    cpu = cpuSecondsOf([child.pid ?? 0]) ?? cpu;
    peak = Math.max(peak, rssOf(child.pid ?? 0));
  }, 50);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(look);
  if (code !== 0 && !mayFail) throw new Error(`${command} ended with exit code ${String(code)}: ${text}`);
  const seconds = (performance.now() - begin) / 1000;
  console.log(`${what.padEnd(28)} ${seconds.toFixed(1)} s, CPU ${cpu.toFixed(1)} s, peak RSS ${Math.round(peak / 1e6)} MB`);
  return text;
}

/** Returns the peak memory of a process in bytes, or 0 if the process has ended. */
function rssOf(pid: number): number {
  try {
    // While a process ends, its file lacks this line.
    return 1024 * Number(/^VmHWM:\s+([0-9]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Writes the folder of a pull that starts with the ledger after block MADE. `digest` is the digest of this ledger. */
async function writeInput(pulled: string, digest: string, store: Store): Promise<void> {
  const at = (name: string) => join(pulled, name);
  mkdirSync(at('start'), { recursive: true });
  const parquet = '(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)';
  const hash = hashAt(MADE);
  if (!existsSync(at('start/outputs.parquet'))) {
    const base = nameNumber('AAAAAAAAAAAAA');
    const names = Array.from({ length: runes }, (_, i) => [i, nameText(base + BigInt(i))] as const);
    const named = await store.append('names', { i: 'BIGINT', name: 'VARCHAR' }, names);
    const owned = function* () {
      for (let i = 0; i < OWNERS; i++) yield [i, addressOf(scriptOf(i), NETWORKS.regtest, hash256) ?? ''] as const;
    };
    const owners = await store.append('owners', { i: 'BIGINT', address: 'VARCHAR' }, owned());
    await store.run(`CREATE TEMP TABLE made AS SELECT sha256(o.range::VARCHAR) AS txid, (o.range % ${runes})::BIGINT AS rune,
        (1 + o.range % 1000 * 1000003)::BIGINT AS units FROM range(${outputs}) AS o;
      CREATE TEMP MACRO rune_of(i) AS (${MADE} - i // 1000) || ':' || (1 + i % 1000);
      COPY (SELECT txid || ':0' AS outpoint, ${MADE}::BIGINT AS block_height, '${hash}' AS block_hash, 1::BIGINT AS tx_index, 1700000000::BIGINT AS "timestamp",
        address, rune_of(rune) AS rune_id, units::VARCHAR AS units FROM made JOIN ${owners} ON i = ('0x' || left(txid, 5))::BIGINT ORDER BY outpoint, rune_id)
        TO '${at('start/outputs.parquet')}' ${parquet};
      COPY (SELECT rune_of(i) AS id, number, name, name AS spaced_name, 0::BIGINT AS divisibility, '${hash}' AS block_hash, (${MADE} - i // 1000)::BIGINT AS block_height,
        (1 + i % 1000)::BIGINT AS tx_index, sha256('rune ' || i) AS tx_id, premine::VARCHAR AS premine, NULL::VARCHAR AS symbol, false AS turbo, false AS cenotaph,
        ${['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((term) => `NULL::VARCHAR AS terms_${term}`).join(', ')}, 1700000000::BIGINT AS "timestamp"
        FROM (SELECT *, (row_number() OVER (ORDER BY ${MADE} - i // 1000, i % 1000) - 1)::BIGINT AS number FROM ${named}) JOIN (SELECT rune, sum(units) AS premine FROM made GROUP BY rune) ON rune = i
        ORDER BY number, id) TO '${at('runes.parquet')}' ${parquet};
      DROP TABLE made`);
  }
  await store.run(`COPY (SELECT id AS rune_id, 0::BIGINT AS mints, '0' AS minted, 0::BIGINT AS burns, '0' AS burned, ${MADE}::BIGINT AS start_height, '${hash}' AS start_hash,
    '${digest}' AS start_digest FROM '${at('runes.parquet')}' ORDER BY id) TO '${at('start/runes.parquet')}' ${parquet}`);
  const start = { class: 'verified', height: MADE, hash, digest, donors: ['https://mirror.example.org'] };
  const ends = Array.from({ length: TIP - MADE + 1 }, (_, i) => ({ height: MADE + i, hash: hashAt(MADE + i) }));
  const facts = { sources: [{ rules: 'ord', blocks: [[MADE + 1, TIP]] }], tip: ends.at(-1), network: 'regtest', ends, start };
  writeFileSync(at('blocks.json'), JSON.stringify(facts));
}

/** Builds the mirror to start from, unless it exists. */
async function makeDonor(): Promise<string> {
  const [pulled, dist] = [join(folder, 'donor/pulled'), join(folder, 'donor/dist')];
  if (existsSync(join(dist, 'runes/v1/manifest.json'))) return dist;
  const store = await Store.open({ memoryLimit: '4GB', threads: 2, scratch: join(folder, 'scratch') });
  const args = ['--input', pulled, '--out', dist, '--cache', join(folder, 'donor/cache'), '--layout', 'archive', '--memory-limit', '2GB'];
  await writeInput(pulled, '0'.repeat(64), store);
  // A build from a wrong digest fails. Its message has the right digest.
  const text = await measure('find the digest', 'build', args, true);
  const digest = /[0-9a-f]{64}/.exec(text.replaceAll('0'.repeat(64), ''))?.[0];
  if (digest === undefined) throw new Error(text);
  await writeInput(pulled, digest, store);
  store.close();
  await measure('build the first mirror', 'build', args);
  return dist;
}

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const host = await startPlainFiles(await makeDonor());
  const node = await startNodeProcess(join(ROOT, 'bench/startNode.ts'), { network: 'regtest', diskMs });
  for (const name of ['input', 'dist', '.cache']) rmSync(join(folder, name), { recursive: true, force: true });
  try {
    const from = ['--from', `core:${node.url}`, '--start-from', host.base];
    console.log((await measure('pull', 'pull', from)).trimEnd());
    await measure('build', 'build', ['--input', 'input/pulled', '--layout', 'archive']);
  } finally {
    await node.stop();
    await host.close();
    if (argv[5] === undefined) rmSync(folder, { recursive: true });
  }
}

void main();
