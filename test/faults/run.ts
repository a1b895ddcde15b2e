/**
 * Puts faults (list.ts) one after another into copies of the program, and checks that the test file of each notices it:
 * `npm run faults [ROOM or pattern of names]`. Each test file first runs without a fault.
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

/** What one run of a test file said. `failure` is its first failed test, or the reason why it could not run. */
interface TestRun {
  readonly passed: number;
  readonly failure: string | undefined;
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
    isStopped,
  };
}

type Outcome = 'noticed' | 'escaped' | 'no result';
const outcomes = new Map<Fault, Outcome>();

function say(fault: Fault, outcome: Outcome, what: string, since: number): void {
  outcomes.set(fault, outcome);
  const seconds = ((Date.now() - since) / 1000).toFixed(1);
  console.log(`${outcome.padEnd(9)} ${seconds.padStart(5)} s  ${roomOf(fault.file)}: ${fault.name} [${fault.test}] ${what}`);
}

/** Runs a test file without a fault, and then with each of these faults. */
async function runGroup(copy: string, test: string, faults: readonly Fault[]): Promise<void> {
  const only = faults.every((fault) => fault.only !== undefined) ? [...new Set(faults.map((fault) => fault.only))].join('|') : undefined;
  const begun = Date.now();
  const baseline = await runTest(copy, test, only);
  if (baseline.failure !== undefined || baseline.passed === 0) {
    for (const fault of faults) say(fault, 'no result', `baseline fails: ${baseline.failure ?? 'no test has this name'}`, begun);
    return;
  }
  for (const fault of faults) {
    const since = Date.now();
    const path = join(copy, fault.file);
    const before = readFileSync(path);
    writeFileSync(path, changed(fault));
    try {
      const { passed, failure, isStopped } = await runTest(copy, test, fault.only);
      if (isStopped) say(fault, 'no result', `stopped after ${MOST_MS / 1000} s`, since);
      else if (failure !== undefined) say(fault, 'noticed', failure, since);
      else if (passed === 0) say(fault, 'no result', `no test has the name ${fault.only}`, since);
      else say(fault, 'escaped', '', since);
    } finally {
      writeFileSync(path, before);
    }
  }
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
  const groups = [...groupBy(faults, ({ test }) => test)];
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
