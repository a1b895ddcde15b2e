/**
 * The folder for working files: below the cache, one for each build, gone when the build ends. One that a killed build left behind is
 * removed by the next.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BuildError, codeOf, messageOf } from '../errors.ts';

const PREFIX = 'scratch-';

/** Runs `work` with a fresh scratch folder. A cache folder that did not exist is removed again if nothing is in it. */
export async function withScratch<T>(cache: string, work: (scratch: string) => Promise<T>): Promise<T> {
  const folder = resolve(cache);
  const scratch = join(folder, `${PREFIX}${process.pid}`);
  const existed = existsSync(folder);
  try {
    mkdirSync(folder, { recursive: true });
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch);
    removeAbandoned(folder);
  } catch (error) {
    throw new BuildError(`the cache folder ${cache} cannot be used: ${messageOf(error)}`, ['Name another with --cache.']);
  }
  try {
    return await work(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    if (!existed) removeIfEmpty(folder);
  }
}

function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
    if (Number.isInteger(pid) && !isAlive(pid)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Something is in it by now, so it stays.
  }
}
