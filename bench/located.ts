/**
 * Measures how long a node takes to check the outputs with which a pull starts: `npx tsx bench/located.ts OUTPUTS CHECK
 * DISK_MS`. Invents a ledger with OUTPUTS outputs. Asks a simulated node for a sample of them if CHECK is `sample`, or
 * for all of them if CHECK is `all`. The node takes DISK_MS milliseconds for each output, one after the other.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, memoryUsage, resourceUsage } from 'node:process';
import { createLog } from '../src/cli/log.ts';
import { Progress } from '../src/cli/progress.ts';
import { LIMITS } from '../src/limits.ts';
import { ChosenOutputs } from '../src/pull/node/chosenOutputs.ts';
import { BitcoinNode } from '../src/pull/node/coreNode.ts';
import { locateStart } from '../src/pull/node/locateStart.ts';
import { addressOf } from '../src/runes/address.ts';
import { outpointBytes } from '../src/runes/bytes.ts';
import { NETWORKS } from '../src/runes/networks.ts';
import { runeId } from '../src/runes/runeId.ts';
import { DiskLedger, startLedger } from '../src/unspent/diskLedger.ts';
import { ByteWriter, packOutput } from '../src/unspent/outputBytes.ts';
import { ROOT } from '../test/support/cli.ts';
import { chainOf, startNodeProcess } from '../test/support/fakeNode.ts';
import { hash256 } from '../test/support/memoryLedger.ts';
import { scriptOfOutput } from './locatedNode.ts';

const [count = 1_000_000, check, diskMs = 0] = [
  Number(argv[2] ?? 1_000_000),
  argv[3] === 'all' ? 'all' : 'sample',
  Number(argv[4] ?? 0),
] as const;

/** Yields the outputs of a ledger, and adds some of them to the sample. */
async function* outputs(path: string): AsyncGenerator<Uint8Array> {
  const chosen = new ChosenOutputs(path, check, LIMITS);
  const packed = new ByteWriter();
  for (let i = 0; i < count; i++) {
    const name = `${createHash('sha256').update(`${i}`).digest('hex')}:${i % 3}`;
    const script = scriptOfOutput(name);
    chosen.add({ name, height: 0, address: addressOf(script, NETWORKS.regtest, hash256) ?? '-' });
    packed.clear();
    packOutput(packed, outpointBytes(name), { script, balances: [{ rune: runeId(1, 0), amount: 1n }] });
    yield packed.view();
  }
  chosen.end();
  chosen.close();
}

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(2);

async function main(): Promise<void> {
  const folder = mkdtempSync(join(env['MIRROR_TEST_FOLDER'] ?? tmpdir(), 'located-'));
  const path = join(folder, 'outputs.txt');
  const state = join(folder, 'state');
  mkdirSync(state);
  const hash = chainOf(0, [[]])[0]?.hash ?? '';
  const start = { class: 'consistent' as const, height: 0, hash, digest: hash, donors: ['https://mirror.example.org'] };
  const node = await startNodeProcess(join(ROOT, 'bench/locatedNode.ts'), { network: 'regtest', diskMs });
  const signal = new AbortController().signal;
  const options = {
    url: new URL(node.url),
    cookie: undefined,
    environment: {},
    home: folder,
    concurrency: 4,
    retries: 3,
    timeoutMs: 60_000,
    pauseMs: 100,
    signal,
  };
  const client = await BitcoinNode.open({ ...options, onNotice: () => undefined });
  let ledger: DiskLedger | undefined;
  try {
    const begin = performance.now();
    const commit = await startLedger({
      folder: state,
      network: 'regtest',
      start,
      rowsFrom: start.height + 1,
      outputs: outputs(path),
      mints: new Map(),
      limits: LIMITS,
    });
    commit();
    console.log(`made a ledger of ${count} outputs in ${seconds(begin)} s`);
    ledger = DiskLedger.open({ folder: state, network: 'regtest', firstHeight: 0, rowsFrom: 1, runes: [], limits: LIMITS });
    const progress = new Progress(createLog('text'), false);
    const locating = {
      path,
      network: NETWORKS.regtest,
      ledger,
      concurrency: 4,
      signal,
      catchUp: () => Promise.reject(new Error('the node moved')),
    };
    const [before, cpu] = [performance.now(), resourceUsage()];
    const { asked } = await locateStart(locating, client, progress);
    const now = resourceUsage();
    const own = (now.userCPUTime + now.systemCPUTime - cpu.userCPUTime - cpu.systemCPUTime) / 1e6;
    console.log(
      `asked for ${asked} outputs in ${seconds(before)} s, own CPU ${own.toFixed(2)} s, RSS ${Math.round(memoryUsage.rss() / 1e6)} MB, ${diskMs} ms of disk each`,
    );
  } finally {
    ledger?.close();
    client.close();
    await node.stop();
    rmSync(folder, { recursive: true });
  }
}

void main();
