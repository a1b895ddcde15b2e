/** `node run.mjs [--transactions 20000] [--runs 3]`: runs the benchmark that README.md describes. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { transactions: { type: 'string', default: '20000' }, runs: { type: 'string', default: '3' } } });
const [wanted, runs] = [values.transactions, values.runs].map((text) => (/^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : Number.NaN));
if (Number.isNaN(wanted + runs)) throw new Error('--transactions and --runs must be whole numbers from 1');

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'peers-'));
let running;
// Files are removed only at the end, because file systems are slow after many removals.
process.on('exit', () => {
  running?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const require = createRequire(import.meta.url);
require('tsx/cjs/api').register();
// A transaction has 2.69 records on average. The generator does not write the last four blocks of 3,500 records into
// the history file.
await require('../generate.ts').generate(Math.ceil(wanted * 2.69) + 14_000, folder);
const ndjson = join(folder, 'ndjson', 'history.ndjson');
const parquet = join(folder, 'parquet', 'history.parquet');

const command = [here('../../scripts/run.cjs'), 'build', '--log', 'json'];
const build = (input) => (out) => [...command, '--input', input, '--out', out, '--cache', `${out}.cache`];
const programs = [
  { name: 'eleventy', call: (out) => [here('node_modules/@11ty/eleventy/cmd.cjs'), '--input=site', `--output=${out}`] },
  { name: 'plain', call: (out) => [here('plain.mjs'), ndjson, out] },
  { name: 'this', call: build(ndjson) },
  { name: 'this, parquet', call: build(parquet) },
].map((program) => ({ ...program, seconds: [], cpu: [], outs: [], peak: 0, failure: undefined }));

const env = { ...process.env, PEERS_INPUT: ndjson };

/** Sums the peak memory (VmHWM) of a process and its descendants, in bytes. Returns 0 without /proc. */
function peakMemory(pid) {
  try {
    const own = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
    );
    return children.reduce((sum, child) => sum + peakMemory(child), own);
  } catch {
    return 0; // The process has just ended, or the system has no /proc.
  }
}

/** Returns the CPU time of all ended child processes, in hundredths of a second. Returns 0 without /proc. */
function childrenCpu() {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[13]) + Number(fields[14])) / 100;
  } catch {
    return 0;
  }
}

/** Returns the busy seconds of all cores since the machine started. */
const machineCpu = () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000;

/**
 * Runs a program once. Returns wall-clock seconds, CPU seconds, the mean number of cores that other programs kept busy,
 * the peak memory, and the failure, if any.
 */
function measure(args) {
  return new Promise((resolve, reject) => {
    const [start, cpuBefore, machineBefore] = [performance.now(), childrenCpu(), machineCpu()];
    const child = spawn(process.execPath, args, { cwd: here('.'), env, stdio: ['ignore', 'ignore', 'pipe'] });
    running = child;
    let [errors, peak] = ['', 0];
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text;
    });
    const timer = setInterval(() => {
      peak = Math.max(peak, peakMemory(child.pid));
    }, 25);
    let [seconds, cpu, others] = [0, 0, 0];
    child.on('error', reject).on('exit', () => {
      seconds = (performance.now() - start) / 1000;
      cpu = childrenCpu() - cpuBefore;
      others = Math.max(0, machineCpu() - machineBefore - cpu) / seconds;
      clearInterval(timer);
    });
    child.on('close', (code, signal) => {
      running = undefined;
      const why = /heap out of memory/.test(errors) ? 'out of memory' : `failed (${signal ?? code}: ${errors.trim().split('\n').at(-1)})`;
      resolve({ seconds, cpu, others, peak, failure: code === 0 ? undefined : `${why} after ${seconds.toFixed(1)} s` });
    });
  });
}

const filesIn = (path, recursive) => readdirSync(path, { recursive, withFileTypes: true }).filter((entry) => entry.isFile());
const sha256 = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/**
 * Maps the transaction files of an output to their SHA-256. Skips subfolders: they have the further pages, which only
 * this project writes.
 */
function hashesOf(out) {
  const path = join(out, 'runes', 'v1', 'transactions');
  return new Map(filesIn(path, false).map(({ name }) => [name, sha256(join(path, name))]));
}

const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;
const machine = `${cpus().length} x ${cpus()[0]?.model}, ${megabytes(totalmem())}, Node ${process.version}`;
console.log(`${machine}; history.ndjson ${megabytes(statSync(ndjson).size)}, history.parquet ${megabytes(statSync(parquet).size)}\n`);
for (let run = 1; run <= runs; run += 1) {
  for (const program of programs.filter(({ failure }) => failure === undefined)) {
    const out = join(folder, `${program.name.replace(/\W+/g, '-')}-${run}`);
    spawnSync('sync', ['-f', folder]); // Without this, the next run would wait for the disk writes of the previous run.
    const { seconds, cpu, others, peak, failure } = await measure(program.call(out));
    program.peak = Math.max(program.peak, peak);
    program.failure = failure;
    if (failure === undefined) {
      program.seconds.push(seconds);
      program.cpu.push(cpu);
      program.outs.push(out);
    }
    const what = failure ?? `${seconds.toFixed(2)} s`;
    console.log(
      `run ${run}, ${program.name}: ${what}, CPU ${cpu.toFixed(2)} s, peak ${megabytes(peak)}, others ${others.toFixed(2)} cores`,
    );
  }
}

const done = programs.filter(({ failure }) => failure === undefined);
const outputs = done.flatMap(({ name, outs }) => outs.map((out) => ({ name, out })));
const [first, ...others] = outputs;
if (first === undefined) throw new Error('no program finished');
const expected = hashesOf(first.out);
let different = 0;
for (const { name, out } of others) {
  const found = hashesOf(out);
  const files = [...new Set([...expected.keys(), ...found.keys()])].filter((file) => expected.get(file) !== found.get(file));
  if (files.length > 0) console.log(`\n${name} differs from ${first.name} in ${files.length} files, such as ${files[0]}`);
  different += files.length;
}
if (different > 0) process.exitCode = 1;
const same = `the same ${expected.size} transaction files, byte for byte, in all ${outputs.length} outputs of:`;
console.log(`\n${different > 0 ? 'NOT THE SAME FILES:' : same} ${done.map(({ name }) => name).join('; ')}\n`);

const row = (cells) => console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(16) : cell.padStart(12))).join(''));
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)];
const rate = (program) => expected.size / median(program.seconds);
row(['program', 'tx files', 'median s', 'min s', 'max s', 'CPU s', 'tx files/s', 'peak RSS', 'all files', 'all files/s']);
for (const program of programs) {
  const { name, seconds, cpu, outs, peak, failure } = program;
  if (failure !== undefined) {
    console.log(`${name.padEnd(16)}  ${failure}; peak RSS ${megabytes(peak)}`);
    continue;
  }
  const all = filesIn(outs[0], true).length;
  const times = [median(seconds), Math.min(...seconds), Math.max(...seconds), median(cpu)].map((time) => time.toFixed(2));
  row([name, `${expected.size}`, ...times, rate(program).toFixed(0), megabytes(peak), `${all}`, (all / median(seconds)).toFixed(0)]);
}
console.log('');
const isOurs = ({ name }) => name.startsWith('this');
for (const ours of done.filter(isOurs)) {
  for (const peer of done.filter((program) => !isOurs(program))) {
    console.log(`${ours.name} / ${peer.name}: ${(rate(ours) / rate(peer)).toFixed(2)} (tx files/s)`);
  }
}
