/** Makes builds of the recorded data, which all files of a test run share. */
import { existsSync, mkdirSync, renameSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialect, Layout } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild } from './build.ts';

/**
 * Returns the folder of a build with the command's defaults, but with the limits of the calling project of tests. Tests
 * may only read the folder. The first caller makes the build. Other callers, also in other processes, wait for it.
 */
export async function recordedOutput(layout: Layout, dialect: Dialect): Promise<string> {
  const out = join(dirname(temporaryFolder()), `recorded-${layout}-${dialect}${env['LIMITS'] === undefined ? '' : '-tiny'}`);
  while (!existsSync(out)) {
    if (!isFirst(`${out}.lock`)) {
      await sleep(50);
      continue;
    }
    try {
      await testBuild(`${out}.part`, { inputs: CONFORMANCE_INPUTS, layout, dialect, lists: layout === 'archive' });
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
