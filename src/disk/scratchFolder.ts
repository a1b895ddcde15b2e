/** Makes scratch folders, and removes those that killed processes left. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { attempt } from '../attempt.ts';
import { BuildError, codeOf, messageOf } from '../errors.ts';

/** Age in milliseconds above which a scratch folder of another machine is removed, because no build takes this long. */
const ABANDONED_MS = 7 * 24 * 3600 * 1000;

/** Runs `work` with an empty scratch folder. Removes it afterwards, and the cache folder if it was made here and is empty. */
export async function withScratch<T>(cache: string, work: (scratch: string) => Promise<T>): Promise<T> {
  const folder = resolve(cache);
  const existed = existsSync(folder);
  let scratch: string;
  try {
    mkdirSync(folder, { recursive: true });
    scratch = makeScratch(folder, 'scratch-');
  } catch (error) {
    throw unusableCache(cache, error);
  }
  try {
    return await work(scratch);
  } finally {
    removeIfPossible(scratch);
    if (!existed) attempt(() => rmdirSync(folder));
  }
}

/** Makes an empty scratch folder in `folder`. Removes those with the same prefix whose processes have ended. */
export function makeScratch(folder: string, prefix: string): string {
  // A name for the host and, on Linux, the container of this process. Elsewhere, the same process id belongs to another process.
  const host = `${hostname()} ${attempt(() => readlinkSync('/proc/self/ns/pid')) ?? ''}`;
  const space = createHash('sha256').update(host).digest('hex').slice(0, 12);
  const scratch = mkdtempSync(join(folder, `${prefix}${space}-${process.pid}-`));
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue;
    const [owner, pid] = name.slice(prefix.length).split('-');
    // In a folder for all users, those of others cannot be removed.
    if (owner === space ? !isAlive(Number(pid)) : isOld(join(folder, name))) removeIfPossible(join(folder, name));
  }
  return scratch;
}

/** Returns the error for a cache folder in which a file or folder cannot be created, moved or removed. */
export const unusableCache = (cache: string, error: unknown): BuildError =>
  new BuildError(`the cache folder ${cache} cannot be used: ${messageOf(error)}`, ['Use another folder with --cache.']);

/** Removes a file or folder, if possible: the next build replaces it, and an error would hide that of the build. */
export const removeIfPossible = (path: string): void => attempt(() => rmSync(path, { recursive: true, force: true }));

/** True for an old folder, and for a missing folder, which another build has removed meanwhile. */
const isOld = (path: string): boolean => Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > ABANDONED_MS;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
