/**
 * Scratch folders: one per build, inside the cache folder, removed when the build ends. A build also removes the
 * scratch folders of killed builds.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BuildError, codeOf, messageOf } from '../errors.ts';

const PREFIX = 'scratch-';

/**
 * Runs `work` with an empty scratch folder. Afterwards, removes the cache folder if this call created it and it is
 * empty.
 */
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
    throw unusableCache(cache, error);
  }
  try {
    return await work(scratch);
  } finally {
    removeIfPossible(scratch);
    if (!existed) removeIfEmpty(folder);
  }
}

/** Makes the error of a cache folder in which a file or folder cannot be made, moved or removed. */
export const unusableCache = (cache: string, error: unknown): BuildError =>
  new BuildError(`the cache folder ${cache} cannot be used: ${messageOf(error)}`, ['Use another folder with --cache.']);

/**
 * Removes a file or folder that the next build removes or replaces, so a failure does no harm. It must not replace the
 * error of the build.
 */
export function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next build removes it.
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
    // The folder is not empty, so it stays.
  }
}
