/** Makes builds of the recorded data and of the sample, which all files of a test run share. */
import { existsSync, mkdirSync, renameSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialect, Layout } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, type TestBuild, temporaryFolder, testBuild } from './build.ts';
import { SAMPLE_INPUT } from './cases.ts';

/** Returns the folder of a build of the recorded data, with the command's defaults. Tests may only read the folder. */
export const recordedOutput = (layout: Layout, dialect: Dialect): Promise<string> =>
  sharedBuild(`recorded-${layout}-${dialect}`, { inputs: CONFORMANCE_INPUTS, layout, dialect, lists: layout === 'archive' });

/** Returns the folder of a build of the sample, with lists and files of rows. Tests may only read the folder. */
export const sampleOutput = (layout: Layout): Promise<string> =>
  sharedBuild(`sample-${layout}`, { inputs: [SAMPLE_INPUT], layout, lists: true, parquet: true });

/**
 * Makes a build with the limits of the calling project of tests, which may only read it. The first caller makes the build. Other callers,
 * also in other processes, wait for it.
 */
export async function sharedBuild(name: string, options: TestBuild): Promise<string> {
  const out = join(dirname(temporaryFolder()), `${name}${env['LIMITS'] === undefined ? '' : '-tiny'}`);
  while (!existsSync(out)) {
    if (!isFirst(`${out}.lock`)) {
      await sleep(50);
      continue;
    }
    try {
      await testBuild(`${out}.part`, options);
      renameSync(`${out}.part`, out);
    } finally {
      rmdirSync(`${out}.lock`);
    }
  }
  return out;
}

/** Returns true if this call created the folder. */
function isFirst(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}
