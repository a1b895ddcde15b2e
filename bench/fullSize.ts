/** The benchmark of all of history: one build of very many records with all lists, a block on top of it, and its check. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../src/cli/log.ts';
import { count } from './figures.ts';
import { type ManyOutputs, writeManyOutputs } from './manyOutputs.ts';

/** Number of records of a block. A transaction has two. */
const RECORDS_PER_BLOCK = 3500;
const CHAIN = { first: 840_000, transactions: RECORDS_PER_BLOCK / 2, runes: 200_000, addresses: 10_000_000 };
/** Time between two readings of the size of the cache folder, in milliseconds. */
const READING_MS = 5000;

/** Results of a command: the seconds it took, and its report. */
interface Run {
  readonly wall: number;
  readonly fields: { readonly peak_rss_mb: number };
}

/**
 * Measures a first build in layout `archive`, a build with one block more, and the verification. Logs seconds, the peak of the memory, and
 * the sizes of input, output and of what the build wrote to its cache folder meanwhile.
 */
export async function measureFullSize(
  records: number,
  memoryLimit: string,
  folder: string,
  run: (command: string, args: readonly string[]) => Promise<Run>,
  log: Log,
): Promise<void> {
  const [input, out, cache] = ['input', 'out', 'cache'].map((name) => join(folder, name)) as [string, string, string];
  const form: ManyOutputs = { ...CHAIN, last: CHAIN.first + Math.ceil(records / RECORDS_PER_BLOCK) - 1 };
  await writeManyOutputs(input, form);
  log.info('generated', `${count(records)} records in ${count(form.last - form.first + 1)} blocks, ${megabytes(input)} MB`);
  let temporary = 0;
  const reading = setInterval(() => {
    temporary = Math.max(temporary, megabytes(cache));
  }, READING_MS);
  const build = ['--input', input, '--out', out, '--cache', cache, '--layout', 'archive', '--memory-limit', memoryLimit];
  const report = (name: string, { wall, fields: { peak_rss_mb: rss } }: Run) =>
    log.info('measured', `${name}: ${wall.toFixed(1)} s, peak RSS ${count(rss)} MB`, { name, wall, rss });
  try {
    report('first build', await run('build', build));
  } finally {
    clearInterval(reading);
  }
  log.info(
    'sizes',
    `output ${count(megabytes(out))} MB, cache folder at most ${count(temporary)} MB, at the end ${count(megabytes(cache))} MB`,
  );
  await writeManyOutputs(input, { ...form, last: form.last + 1 }, form.last + 1);
  report('new block', await run('build', build));
  report('verify', await run('verify', ['--dir', out, '--memory-limit', memoryLimit]));
}

/** Returns the size of all files below a folder. Files may vanish meanwhile. */
function megabytes(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()))
    bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  return Math.round(bytes / 1e6);
}
