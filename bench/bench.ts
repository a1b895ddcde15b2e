/**
 * The build benchmark: measures full builds, builds after a new block, builds after a reorganisation, and the floor (bench/floor.cjs). Each
 * build runs in its own process, one after another, and each full build gets a new folder. Folders stay until the end, because file systems
 * are slow after removals. Only folders in memory are removed immediately.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { linkSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, type Flags, HELP, LOG } from '../src/cli/flags.ts';
import type { Log } from '../src/cli/log.ts';
import { CliError, EXIT, UsageError } from '../src/errors.ts';
import { LAYOUTS, type Layout } from '../src/pages/mirrorOptions.ts';
import { count, type Spread, spread } from './figures.ts';
import { measureFullSize } from './fullSize.ts';
import { FORMS, type Form, type Generated, generate, SHAPES } from './generate.ts';

export const BENCH_COMMAND: Command = {
  call: 'npm run bench --',
  about: 'Measures builds of invented records, and compares them with the speed of the file system.',
  flags: [
    { name: 'records', value: 'N', byDefault: '100000', about: 'Number of records before the new blocks.' },
    { name: 'layout', value: 'NAME', byDefault: 'files', about: 'files or archive, as for the build.' },
    { name: 'shape', value: 'NAME', byDefault: 'random', about: 'random: no value repeats; real: as in real blocks.' },
    { name: 'forms', value: 'LIST', byDefault: 'parquet,ndjson', about: 'Input formats.' },
    { name: 'no-floor', about: 'Omits the floor, which needs the same disk space again.' },
    { name: 'runs', value: 'N', byDefault: '5', about: 'Number of runs.' },
    { name: 'dir', value: 'DIR', byDefault: 'the temporary folder', about: 'Working folder; its file system is measured.' },
    {
      name: 'full',
      about:
        'Builds all of history once, in layout archive with all lists, then a block more, and verifies. --records is 200 million then.',
    },
    { name: 'memory-limit', value: 'SIZE', byDefault: '1GB', about: 'As for the build.' },
    LOG,
    HELP,
  ],
  examples: [
    { args: '--records 1000000 --dir /mnt/disk', about: 'Builds a million records on the file system of /mnt/disk.' },
    { args: '--layout archive --forms parquet --no-floor --runs 1', about: 'Measures only builds, once.' },
    {
      args: '--full --dir /mnt/disk',
      about: 'Builds 200 million records. docs/measurements.md says how long and how much space builds take.',
    },
  ],
  exits: ['done', 'usage', 'buildFailed'],
};

/** Results of one run of a command. */
interface Run {
  /** Seconds from the start of the process to its end. */
  readonly wall: number;
  /** Fields of the report that a build writes (`--log json`). */
  readonly fields: {
    readonly total_seconds: number;
    readonly seconds: Readonly<Record<string, number>>;
    readonly cpu_seconds: Readonly<Record<string, number>>;
    readonly peak_rss_mb: number;
    readonly files: number;
    readonly records: number;
  };
}

const ROOT = new URL('..', import.meta.url).pathname;
type Step = 'full' | 'new block' | 'reorg of 3 blocks';
/** File system type of tmpfs on Linux. */
const TMPFS = 0x01021994;

export async function bench(flags: Flags, log: Log): Promise<void> {
  const isFull = flags.has('full');
  const records = flags.integer('records', isFull ? 200_000_000 : 100_000, 20_000, 1_000_000_000);
  const runs = flags.integer('runs', 5, 1, 100);
  const layout = flags.choice('layout', LAYOUTS);
  const forms = formsOf(flags.one('forms') ?? FORMS.join());
  const parent = flags.one('dir') ?? tmpdir();
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'mirror-bench-'));
  const isMemory = statfsSync(folder).type === TMPFS;
  const memoryLimit = flags.one('memory-limit') ?? '1GB';
  if (isFull) {
    log.info('folder', `The input and the output are in ${folder}, and stay there if a step fails.`);
    await measureFullSize(records, memoryLimit, folder, runCommand, log);
    return rmSync(folder, { recursive: true });
  }
  try {
    const data = await generate(records, join(folder, 'data'), forms, flags.choice('shape', SHAPES));
    log.info('generated', `${count(data.records)} records of ${count(data.transactions)} transactions in ${data.blocks} blocks.`, {
      ...data,
    });
    const results: Results = { builds: new Map(), floors: [] };
    for (let i = 0; i < runs; i += 1) {
      for (const form of forms) {
        const work = join(folder, `${form}-${i}`);
        await buildAll(data, join(folder, 'data', form), form, work, layout, flags, memoryLimit, results);
        if (isMemory) rmSync(work, { recursive: true });
      }
      log.info('run', `Run ${i + 1} of ${runs} is done.`, { run: i + 1, runs });
    }
    report(results, log);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function formsOf(list: string): Form[] {
  const names = list.split(',');
  const unknown = names.find((name) => !FORMS.some((form) => form === name));
  if (unknown !== undefined)
    throw new UsageError(`--forms "${unknown}" must be one of ${FORMS.join(', ')}, or several separated by commas`);
  return FORMS.filter((form) => names.includes(form));
}

interface Results {
  /** Runs, grouped by input format and step. */
  readonly builds: Map<string, Run[]>;
  readonly floors: Floor[];
}

/** Runs a full build and its floor, and a build with a new block. Then replaces the three blocks below the new block, and builds again. */
async function buildAll(
  data: Generated,
  source: string,
  form: Form,
  work: string,
  layout: Layout,
  flags: Flags,
  memoryLimit: string,
  results: Results,
): Promise<void> {
  const input = join(work, 'input');
  mkdirSync(input, { recursive: true });
  const put = (name: string, as = name) => {
    rmSync(join(input, `${as}.${form}`), { force: true });
    linkSync(join(source, `${name}.${form}`), join(input, `${as}.${form}`));
  };
  const build = async (step: Step) => {
    const args = ['--input', input, '--out', join(work, 'out'), '--cache', join(work, 'cache')];
    const run = await runCommand('build', [...args, '--layout', layout, '--memory-limit', memoryLimit]);
    const key = `${form}, ${step}`;
    results.builds.set(key, [...(results.builds.get(key) ?? []), run]);
  };
  for (const name of [data.oldest, data.history, ...data.recent]) put(name);
  await build('full');
  if (form === 'parquet' && !flags.has('no-floor')) results.floors.push(await runFloor(join(work, 'out'), join(work, 'floor')));
  put(data.newest);
  await build('new block');
  const last = data.recent.slice(-data.replaced.length);
  for (const [i, name] of data.replaced.entries()) put(name, last[i]);
  await build('reorg of 3 blocks');
}

/** Runs a Node program. Returns its standard output and the seconds it took. */
async function run(args: readonly string[]): Promise<{ stdout: string; wall: number }> {
  const start = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new CliError(`${args.join(' ')} ended with exit code ${code}`, EXIT.buildFailed, [stdout]);
  return { stdout, wall: (performance.now() - start) / 1000 };
}

/** Runs a command of the program. Returns the seconds it took, and the fields of its report. */
async function runCommand(command: string, args: readonly string[]): Promise<Run> {
  const { stdout, wall } = await run([join(ROOT, 'scripts/run.cjs'), command, ...args, '--log', 'json']);
  return { wall, fields: JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Run['fields'] };
}

interface Floor {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly files: number;
  readonly bytes: number;
}

async function runFloor(from: string, to: string): Promise<Floor> {
  mkdirSync(to);
  const { stdout } = await run([join(ROOT, 'bench/floor.cjs'), from, to, String(availableParallelism())]);
  return JSON.parse(stdout) as Floor;
}

const show = ({ median, min, max }: Spread, digits: number): string =>
  [median, min, max].map((n) => (digits === 0 ? count(n) : n.toFixed(digits))).join(' / ');

/** Prints median / min / max of all results. A ratio is computed within one run, because the load of the machine varies from run to run. */
function report({ builds, floors }: Results, log: Log): void {
  if (floors.length > 0) reportFloors(floors, log);
  for (const [name, runs] of builds) reportBuilds(name, runs, floors, log);
}

function reportFloors(floors: readonly Floor[], log: Log): void {
  const floor = spread(floors.map((f) => f.seconds));
  const [sample] = floors;
  log.info(
    'floor',
    `floor: ${show(floor, 2)} s for ${count(sample?.files ?? 0)} files, ${count((sample?.bytes ?? 0) / 1e6)} MB; CPU ${show(spread(floors.map((f) => f.cpuSeconds)), 1)} s`,
    { seconds: floor, files: sample?.files, bytes: sample?.bytes },
  );
}

function reportBuilds(name: string, runs: readonly Run[], floors: readonly Floor[], log: Log): void {
  const wall = spread(runs.map((r) => r.wall));
  const inside = spread(runs.map((r) => r.fields.total_seconds));
  const rss = spread(runs.map((r) => r.fields.peak_rss_mb));
  log.info(
    'build',
    `${name}: ${show(wall, 2)} s, of which start and end ${show(spread(runs.map((r) => r.wall - r.fields.total_seconds)), 2)} s; peak RSS ${show(rss, 0)} MB`,
    {
      name,
      wall,
      inside,
      rss,
    },
  );
  const stages = Object.keys(runs[0]?.fields.seconds ?? {}).map((stage) => {
    const [seconds, cpu] = [runs.map((r) => r.fields.seconds[stage] ?? 0), runs.map((r) => r.fields.cpu_seconds[stage] ?? 0)];
    return `${stage} ${spread(seconds).median.toFixed(2)} s (CPU ${spread(cpu).median.toFixed(2)} s)`;
  });
  log.info('stages', `  ${stages.join(', ')}`, { name, runs: runs.map((r) => r.fields) });
  if (!name.endsWith('full')) return;
  const rate = (what: 'files' | 'records') => spread(runs.map((r) => r.fields[what] / r.wall));
  log.info('rate', `  ${show(rate('records'), 0)} records/s, ${show(rate('files'), 0)} files/s`, {
    records: rate('records'),
    files: rate('files'),
  });
  if (floors.length === 0) return;
  const ratio = spread(runs.map((r, i) => (floors[i]?.seconds ?? 0) / r.wall));
  const bare = spread(runs.map((r, i) => (floors[i]?.seconds ?? 0) / r.fields.total_seconds));
  log.info('ratio', `  floor / build: ${show(ratio, 2)} of the whole command, ${show(bare, 2)} without start and end`, {
    name,
    ratio,
    bare,
  });
}
