/** Merges of outputs of builds, for tests. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Progress } from '../../src/cli/progress.ts';
import { CliError } from '../../src/errors.ts';
import { type MergeResult, merge } from '../../src/merge/merge.ts';
import { verify } from '../../src/verify/verify.ts';
import { RecordingLog, type TestBuild, testBuild, tree, writeFiles } from './build.ts';
import { ndjson, record } from './records.ts';

const quiet = () => new Progress(new RecordingLog(), false);
export const check = (out: string) => verify(out, quiet());

export const testMerge = (out: string, parts: readonly string[], cache = `${out}.cache`): Promise<MergeResult> =>
  merge({ out, parts, cache }, new RecordingLog(), quiet);

/** Every file but the marker, which tells whether a merge finished, and the lock, which a killed one leaves. */
export function contents(out: string): Record<string, string> {
  const { '.rune-activity-mirror': _marker, '.rune-activity-mirror.lock': _lock, ...files } = existsSync(out) ? tree(out) : {};
  return files;
}

export const list = (out: string, name: 'added' | 'removed'): string[] =>
  readFileSync(join(`${out}.cache/changes`, `${name}.txt`), 'utf8')
    .split('\n')
    .filter(Boolean);

/** Builds each of these lists of records. Returns the output folders. */
export async function buildParts(
  work: string,
  parts: Readonly<Record<string, readonly unknown[]>>,
  options: Partial<TestBuild> = {},
): Promise<string[]> {
  const outs: string[] = [];
  for (const [name, records] of Object.entries(parts)) {
    writeFiles(work, { [`in-${name}/a.ndjson`]: ndjson(records) });
    await testBuild(join(work, name), { inputs: [join(work, `in-${name}`)], ...options });
    outs.push(join(work, name));
  }
  return outs;
}

/** Records of a block with some pages of 20, some of 60, and several operations. */
export const blockOf = (height: number, amount = '1') =>
  Array.from({ length: 75 }, (_, i) => record(height, 3 - Math.floor(i / 25), { amount, operation: i % 3 === 0 ? 'mint' : 'send' }));

/** The error of a merge that must fail. */
export async function failedMerge(out: string, parts: readonly string[], cache?: string): Promise<CliError> {
  try {
    await testMerge(out, parts, cache);
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error('the merge succeeded');
}
