/**
 * Puts faults (list.ts) one after another into copies of the program, and checks that the test file of each notices it: `npm run faults
 * [ROOM or pattern of names]`. The tests that noticed faults then run without a fault.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { transformSync } from 'esbuild';
import { EXIT } from '../../src/errors.ts';
import { groupBy } from '../../src/groupBy.ts';
import { ROOT } from '../support/cli.ts';
import { changed, FAULTS, type Fault, ROOMS, roomOf } from './list.ts';

/** Maximum number of copies, each with one test file at a time. */
const COPIES = 2;

/** A test file that is still running after this time is stopped. Only broken tests take so long. */
const MOST_MS = Number(env['FAULT_MS'] ?? 60_000);

/**
 * What one run of a test file said. `failure` is its first failed test, or the reason why it could not run. `failed` is the name of this
 * test.
 */
interface TestRun {
  readonly passed: number;
  readonly failure: string | undefined;
  readonly failed?: string | undefined;
  readonly isStopped: boolean;
}

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Returns the arguments with which Node runs a test file. */
const testArguments = (test: string, only: string | undefined, report: string): string[] => [
  'node_modules/vitest/vitest.mjs',
  ...['run', `test/${test}.test.ts`, '--config', 'test/faults/vitest.config.ts', '--root', '.', '--bail', '1'],
  ...['--reporter', 'json', '--outputFile', report],
  ...(only === undefined ? [] : ['-t', only]),
];

/** Runs a test file in a copy of the project. */
async function runTest(copy: string, test: string, only: string | undefined): Promise<TestRun> {
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const child = spawn(process.execPath, testArguments(test, only, report), { cwd: copy, stdio: 'ignore', detached: true });
  let isStopped = false;
  const timer = setTimeout(() => {
    isStopped = true;
    // The test's own processes are in its group.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, MOST_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  if (!existsSync(report))
    return { passed: 0, failure: isStopped ? 'took too long' : `vitest ended with ${code} and no report`, isStopped };
  const { numPassedTests, testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults).find(({ status }) => status === 'failed');
  const unread = testResults.find(({ status }) => status === 'failed')?.message.split('\n')[0];
  return {
    passed: numPassedTests,
    failure: code === 0 ? undefined : (failed?.fullName ?? unread ?? `vitest ended with ${code}`),
    failed: failed?.fullName,
    isStopped,
  };
}

type Outcome = 'noticed' | 'escaped' | 'no result';
const outcomes = new Map<Fault, Outcome>();

/** A run of a test file with a fault. */
interface FaultRun extends TestRun {
  readonly fault: Fault;
  readonly seconds: number;
}

function say({ fault, seconds }: FaultRun, outcome: Outcome, what: string): void {
  outcomes.set(fault, outcome);
  console.log(`${outcome.padEnd(9)} ${seconds.toFixed(1).padStart(5)} s  ${roomOf(fault.file)}: ${fault.name} [${fault.test}] ${what}`);
}

/** Runs a test file with a fault. */
async function runWith(copy: string, fault: Fault): Promise<FaultRun> {
  const since = Date.now();
  const path = join(copy, fault.file);
  const before = readFileSync(path);
  writeFileSync(path, changed(fault));
  try {
    return { fault, ...(await runTest(copy, fault.test, fault.only)), seconds: (Date.now() - since) / 1000 };
  } finally {
    writeFileSync(path, before);
  }
}

/**
 * Runs a test without a fault. Returns undefined if it passes, and otherwise what failed. A test may need those before it, so all that ran
 * with the faults run if it fails alone.
 */
async function runWithout(copy: string, test: string, runs: readonly FaultRun[]): Promise<string | undefined> {
  const names = runs.flatMap(({ failed }) => failed ?? []);
  const exactly = [...new Set(names)].map((name) => `^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);
  const patterns = new Set(runs.map(({ fault }) => fault.only));
  const only = patterns.has(undefined) ? undefined : [...patterns].join('|');
  if (names.length === runs.length) {
    const { passed, failure } = await runTest(copy, test, exactly.join('|'));
    if (failure === undefined && passed >= exactly.length) return undefined;
  }
  const { passed, failure } = await runTest(copy, test, only);
  return failure ?? (passed === 0 ? 'no test has this name' : undefined);
}

/** Runs a test file with each of these faults, and then without one the tests that noticed them. */
async function runGroup(copy: string, test: string, faults: readonly Fault[]): Promise<void> {
  const noticed: FaultRun[] = [];
  for (const fault of faults) {
    const run = await runWith(copy, fault);
    if (run.isStopped) say(run, 'no result', `stopped after ${MOST_MS / 1000} s`);
    else if (run.failure !== undefined) noticed.push(run);
    else if (run.passed === 0) say(run, 'no result', `no test has the name ${fault.only}`);
    else say(run, 'escaped', '');
  }
  if (noticed.length === 0) return;
  const wrong = await runWithout(copy, test, noticed);
  for (const run of noticed)
    if (wrong === undefined) say(run, 'noticed', run.failure ?? '');
    else say(run, 'no result', `fails without the fault, too: ${wrong}`);
}

/** Copies the files that git tracks or would add. */
function makeCopy(folder: string): string {
  const paths = execFileSync('git', ['ls-files', '-coz', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' }).split('\0');
  for (const path of paths) if (path !== '' && existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(folder, path));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

const wanted = process.argv[2] ?? '';
const isRoom = wanted in ROOMS;
const faults = FAULTS.filter(({ file, name }) => (isRoom ? roomOf(file) === wanted : new RegExp(wanted).test(name)));
for (const fault of faults) transformSync(changed(fault), { loader: 'ts' });
const work = mkdtempSync(join(tmpdir(), `rune-activity-mirror-${process.pid}-faults-`));
try {
  const groups = [...groupBy(faults, ({ test }) => test)].sort(([, a], [, b]) => b.length - a.length);
  await Promise.all(
    Array.from({ length: Math.min(COPIES, groups.length) }, async (_, i) => {
      const copy = makeCopy(join(work, `${i}`));
      for (let group = groups.shift(); group !== undefined; group = groups.shift()) await runGroup(copy, ...group);
    }),
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}
const count = (of: readonly Fault[], outcome: Outcome) => of.filter((fault) => outcomes.get(fault) === outcome).length;
const line = (name: string, of: readonly Fault[]) =>
  `${name.padEnd(10)}${[of.length, count(of, 'noticed'), count(of, 'escaped'), count(of, 'no result')].map((n) => String(n).padStart(10)).join('')}`;
console.log(`\n${'room'.padEnd(10)}${['faults', 'noticed', 'escaped', 'no result'].map((word) => word.padStart(10)).join('')}`);
for (const [room, of] of groupBy(faults, ({ file }) => roomOf(file))) console.log(line(room, of));
console.log(line('all', faults));
if (count(faults, 'escaped') > 0) process.exitCode = EXIT.verificationFailed;
else if (count(faults, 'noticed') < faults.length || faults.length === 0) process.exitCode = EXIT.buildFailed;
